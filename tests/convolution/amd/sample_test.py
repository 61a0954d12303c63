"""A sample of the rule sets compiles: in each run one kernel of three sets, with KERNELWRIGHT_EVERY one of each kind.

A kind is a direction, dtype, pipeline and scheduler. The build itself refuses kernels that spill registers or lack
matrix instructions. All kernels of a set: ``kernelwright build --set convolution:tests --arch gfx942 …``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from compiling import executor
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.rule_sets import RULE_SETS
from kernelwright.codegen.operations.convolution.spec import conv_spec
from kernelwright.codegen.selecting.selection import Selection, load_archs, select

ARCHS = ("gfx90a", "gfx942", "gfx950")
EVERY = bool(os.environ.get("KERNELWRIGHT_EVERY"))
SAMPLED = [("convolution:tests", "gfx90a"), ("convolution:profiler", "gfx942"), ("convolution:full", "gfx950")]
ALL = [(name, arch) for name in map("convolution:{}".format, RULE_SETS) for arch in ARCHS]

LARGE = (
    "grouped_conv_bwd_weight_fp16_ndhwgc_3d_mem_cshuffle_intrawave_256x16x64_4x1x1_16x16x32_vec8_1_1_2stage"
    "_filter1x1_stride1_pad0_explicit_gemm"
)


def kind(kernel: Kernel) -> tuple[str, ...]:
    spec = conv_spec(kernel)
    return spec.direction, spec.dtype, spec.pipeline, spec.scheduler


def sample(kernels: tuple[Kernel, ...], name: str) -> tuple[Kernel, ...]:
    """One kernel of each kind, the same ones each time; one in all unless every kind was asked for."""
    mixed = sorted(kernels, key=lambda kernel: hashlib.sha256(f"{name} {kernel.name}".encode()).digest())
    first: dict[tuple[str, ...], Kernel] = {}
    for kernel in mixed:
        first.setdefault(kind(kernel), kernel)
    return tuple(first.values()) if EVERY else tuple(mixed[:1])


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("name", "arch"), ALL if EVERY else SAMPLED)
def test_a_sample_of_each_set_compiles(name: str, arch: str, tmp_path: Path) -> None:
    (item,) = select("set", name, [arch], load_archs())
    build(item, sample(item.kernels, name), executor(), tmp_path)


@pytest.mark.thorough(instead="test_a_sample_of_each_set_compiles")
def test_a_tile_that_takes_more_than_half_of_lds_compiles(tmp_path: Path) -> None:
    """Bounds that promised two such workgroups on a compute unit failed; so did 400 kernels of the full set."""
    (item,) = select("set", "convolution:profiler", ["gfx942"], load_archs())
    build(item, tuple(kernel for kernel in item.kernels if kernel.name == LARGE), executor(), tmp_path)


def build(item: Selection, chosen: tuple[Kernel, ...], executor: LocalExecutor, folder: Path) -> None:
    selection = Selection(item.arch, tuple(sorted(chosen, key=lambda kernel: kernel.name)), {}, {})
    (manifest,) = build_libraries("sample", [selection], DEFAULT_TOOLCHAINS, executor, folder / "out")
    assert chosen and all(kernel.name in manifest.read_text() for kernel in chosen)
