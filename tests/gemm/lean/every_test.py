"""Slow: kernels with and without the rewritten headers, hours of processor time for all.

``KERNELWRIGHT_EVERY=1 ./pants test tests/gemm/lean:every`` compares, on all GPU architectures, every shipped kernel of
each operation and one of each kind of every rule set of convolution and receipt of attention (:mod:`.samples`); of AMD
GEMM also every pipeline, scheduler, epilogue and variant in a small tile, and a member of a preselected set of each
purpose. ``=shipped`` and ``=sampled`` compare the first or the second of these, ``=gfx942`` all of one architecture,
and ``:mem`` behind any of them those with "mem" in their name. Without the variable nothing is compiled.

Nothing is compiled twice (``tests/compiling.py``): a suite that was ended goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gemm.amd.templates import members as preselected
from gemm.amd.templates import templates
from gemm.lean.both_ways import DEFAULTS, difference
from gemm.lean.samples import members, one_of_each_kind, shipped
from kernelwright.arch import load, names
from kernelwright.codegen.kernel import Kernel

WHAT, _, PART = os.environ.get("KERNELWRIGHT_EVERY", "").partition(":")
GPUS = tuple(name for name in names() if load(name).backend in DEFAULTS)
SAMPLE = 8


def of_arch(arch: str) -> Iterator[Kernel]:
    if WHAT != "sampled":
        yield from shipped(arch)
    if WHAT != "shipped":
        yield from one_of_each_kind(arch)
    if WHAT in ("shipped", "sampled"):
        return
    if load(arch).backend == "ck_tile":
        yield from (one.kernel for one in (*templates(arch), *preselected(arch)))
    else:
        for name in ("bf16_rcr_all", "fp16_rrr_all", "fp8_rcr_all"):
            kernels = members(name, arch)
            yield from kernels[:: -(-len(kernels) // SAMPLE)]


def chosen() -> list[Kernel]:
    archs = [arch for arch in GPUS if WHAT in ("1", "shipped", "sampled", arch)]
    different = {kernel.identity: kernel for arch in archs for kernel in of_arch(arch) if PART in kernel.name}
    return list(different.values())


@pytest.mark.parametrize("kernel", chosen(), ids=lambda kernel: f"{kernel.arch}-{kernel.name}")
def test_every_kernel_is_the_same_with_and_without(kernel: Kernel) -> None:
    assert difference(kernel) == 0
