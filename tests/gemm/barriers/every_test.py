"""Slow: no access of LDS crosses a barrier in kernels of GEMM and convolution, 5 to 10 processor seconds a kernel.

``KERNELWRIGHT_EVERY=1 ./pants test tests/gemm/barriers:every`` compiles every shipped kernel of both operations, each
template of GEMM, and one convolution of each kind of every rule set, for all AMD architectures, with barriers that the
compiler may not cross, and compares where accesses of LDS are. ``=shipped`` takes the shipped kernels, ``=gfx942`` one
architecture, ``=gfx942:mem`` those with "mem" in their name. Nothing is compiled twice (``tests/compiling.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from compiling import executor
from gemm.amd.templates import templates
from gemm.barriers.lds_order import FENCED, lds_order, without_order
from gemm.lean.samples import one_of_each_kind, shipped
from kernelwright.arch import load, names
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.rule_sets import RULE_SETS
from kernelwright.codegen.planning.compile_plan import kernel_actions

WHAT, _, PART = os.environ.get("KERNELWRIGHT_EVERY", "").partition(":")
AMD = tuple(name for name in names() if load(name).backend == "ck_tile")


def of_arch(arch: str) -> Iterator[Kernel]:
    yield from (kernel for kernel in shipped(arch) if kernel.spec.op != "attention")  # which has such barriers
    if WHAT != "shipped":
        yield from (one.kernel for one in templates(arch))
        yield from one_of_each_kind(arch, [f"convolution:{name}" for name in RULE_SETS])


def chosen() -> list[Kernel]:
    archs = [arch for arch in AMD if WHAT in ("1", "shipped", arch)]
    different = {kernel.identity: kernel for arch in archs for kernel in of_arch(arch) if PART in kernel.name}
    return list(different.values())


def assembly(kernel: Kernel, before: str = "") -> str:
    """A kernel's assembly with ``before`` in front of what its header includes."""
    arch = load(kernel.arch)
    plan = kernel_actions(kernel, arch, backend_for(arch, DEFAULT_TOOLCHAINS))
    step, place = plan.actions[0], '#include "kernelwright/'
    files = [
        replace(file, text=file.text.replace(place, before + place, 1)) if file.path in step.inputs else file
        for file in plan.files
    ]
    made = executor().run(files, [step])
    return made[step.outputs[0]].read_text()


@pytest.mark.parametrize("kernel", chosen(), ids=lambda kernel: f"{kernel.arch}-{kernel.name}")
def test_no_access_crosses_a_barrier(kernel: Kernel) -> None:
    plain, fenced = assembly(kernel), assembly(kernel, FENCED)
    # On gfx12 CK Tile's barriers are inline assembly that says so itself.
    assert plain != fenced or "s_barrier" not in plain or "s_barrier_signal" in plain
    order, other = lds_order(plain), lds_order(fenced)
    assert order == other or without_order(order) == without_order(other)
