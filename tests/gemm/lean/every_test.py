"""Slow: kernels with and without the rewritten headers, hours of processor time for all.

``KERNELWRIGHT_EVERY=1 ./pants test tests/gemm/lean:every`` compares, on all GPU architectures, every shipped kernel of
each operation and a sample of its other sets; of AMD GEMM also every pipeline, scheduler, epilogue and variant in a
small tile, and a member of a preselected set of each purpose. ``KERNELWRIGHT_EVERY=gfx942`` compares those of one
architecture, ``KERNELWRIGHT_EVERY=gfx942:mem`` those with "mem" in their name, ``KERNELWRIGHT_EVERY=shipped`` the
shipped ones. Without the variable nothing is compiled. Kernels of a set that no backend builds so far are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gemm.amd.templates import members, templates
from gemm.lean.both_ways import DEFAULTS, difference
from kernelwright.arch import load, names
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.expand import EmptyExpansionError
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

WHAT, _, PART = os.environ.get("KERNELWRIGHT_EVERY", "").partition(":")
GPUS = tuple(name for name in names() if load(name).backend in DEFAULTS)
SHIPPED = ("essential", "conv_essential", "fmha_essential")
SAMPLED = ("conv_default", "conv_tests", "conv_profiler", "conv_full", "fmha_pytorch", "fmha_fp8_test", "fmha_fp32_min")
SAMPLE = 8


def built(name: str, arch: str) -> list[Kernel]:
    """The kernels of a set that the architecture's backend builds."""
    try:
        kernels = expand_set(name, load(arch)).kernels
    except EmptyExpansionError:
        return []
    found = []
    for kernel in kernels:
        try:
            operation(kernel.spec.op).context(kernel, load(arch).backend)
            found.append(kernel)
        except SpecError:
            continue
    return found


def sample(name: str, arch: str) -> list[Kernel]:
    """Members of a set, evenly spaced by name."""
    kernels = sorted(built(name, arch), key=lambda kernel: kernel.name)
    return kernels[:: -(-len(kernels) // SAMPLE)] if kernels else []


def of_arch(arch: str) -> Iterator[Kernel]:
    for name in SHIPPED:
        yield from built(name, arch)
    if WHAT == "shipped":
        return
    for name in SAMPLED:
        yield from sample(name, arch)
    if load(arch).backend == "ck_tile":
        yield from (one.kernel for one in (*templates(arch), *members(arch)))
    else:
        yield from (kernel for name in ("bf16_rcr_all", "fp16_rrr_all", "fp8_rcr_all") for kernel in sample(name, arch))


def chosen() -> list[Kernel]:
    archs = [arch for arch in GPUS if WHAT in ("1", "shipped", arch)]
    different = {kernel.identity: kernel for arch in archs for kernel in of_arch(arch) if PART in kernel.name}
    return list(different.values())


@pytest.mark.parametrize("kernel", chosen(), ids=lambda kernel: f"{kernel.arch}-{kernel.name}")
def test_every_kernel_is_the_same_with_and_without(kernel: Kernel) -> None:
    assert difference(kernel) == 0
