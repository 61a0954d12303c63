"""Slow: the assembly of kernels with and without the rewritten headers, hours of processor time for all.

``KERNELWRIGHT_EVERY=1 ./pants test tests/gemm/lean:every`` compares every shipped kernel, every pipeline, scheduler,
epilogue and variant in a small tile, and a member of a preselected set of each purpose, on all architectures.
``KERNELWRIGHT_EVERY=gfx942`` compares those of one architecture, ``KERNELWRIGHT_EVERY=gfx942:mem`` those with "mem" in
their name, ``KERNELWRIGHT_EVERY=shipped`` the shipped ones. Without the variable nothing is compiled.
"""

from __future__ import annotations

import os

import pytest

from gemm.amd.templates import members, templates
from gemm.lean.both_ways import difference
from kernelwright.arch import load, names
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.selecting.sets import expand_set

WHAT, _, PART = os.environ.get("KERNELWRIGHT_EVERY", "").partition(":")
AMD = tuple(name for name in names() if load(name).backend == "ck_tile")


def chosen() -> list[Kernel]:
    archs = [arch for arch in AMD if WHAT in ("1", "shipped", arch)]
    kernels = [kernel for arch in archs for kernel in expand_set("essential", load(arch)).kernels]
    if WHAT != "shipped":
        kernels += [one.kernel for arch in archs for one in (*templates(arch), *members(arch))]
    different = {kernel.identity: kernel for kernel in kernels if PART in kernel.name}
    return list(different.values())


@pytest.mark.parametrize("kernel", chosen(), ids=lambda kernel: f"{kernel.arch}-{kernel.name}")
def test_every_kernel_is_the_same_with_and_without(kernel: Kernel) -> None:
    assert difference(kernel) == 0
