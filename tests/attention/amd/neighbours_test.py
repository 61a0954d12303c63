"""Shipped attention kernels for AMD GPUs, with head dimensions below their own, do not read or write a neighbour.

Every other head, request and unused place of a cache is NaN, see :mod:`attention.amd.neighbours`. By default two head
dimensions; KERNELWRIGHT_EVERY=1 takes every one that the kernels serve, and clean rows at both ends of memory.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import as_file, files

import pytest

from attention.amd.neighbours import FAMILIES, HEADS_CLEAN, PROBLEMS, Clean
from kernelwright.dispatch import Dispatcher, KernelEntry, KernelLibrary, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.simulator.run import device

ARCHS = tuple(os.environ.get("KERNELWRIGHT_ARCHS", "gfx90a gfx942 gfx950 gfx1100 gfx1201").split())
EVERY = bool(os.environ.get("KERNELWRIGHT_EVERY"))
LARGEST, VECTOR, ROTARY_VECTOR = 128, 8, 16  # of the shipped kernels
FEW = ((96, 96), (40, 24))
ALL = (*((hdim, hdim) for hdim in range(VECTOR, LARGEST + 1, VECTOR)), (40, 24), (8, 120), (120, 8))


@cache
def library(arch: str) -> KernelLibrary:
    """The shipped attention library."""
    with as_file(files("attention") / "amd" / f"{arch}_attention" / arch) as path:
        return KernelLibrary.load(path)


@cache
def dispatcher(arch: str, problem: str) -> Dispatcher:
    """Pages of whole tiles are served by kernels of batch prefill, too: there the kernel is named."""
    mocks.native_library()
    named = kernels(arch, problem) if problem == "pages_of_tiles" else []
    return Dispatcher([library(arch)], f"sim:{arch}", selection=named[0].identity if named else "auto")


def kernels(arch: str, problem: str) -> list[KernelEntry]:
    """Those that a problem may launch, none where the architecture has not all families."""
    candidates = [kernel for kernel in library(arch).kernels if kernel.spec["family"] in FAMILIES[problem]]
    return candidates if {kernel.spec["family"] for kernel in candidates} == set(FAMILIES[problem]) else []


def serves(arch: str, problem: str, clean: Clean) -> bool:
    """Whether all of these kernels are there and take the head dimensions: their own, or smaller ones with padding.

    Those that append turn 16 elements at a time.
    """
    candidates = kernels(arch, problem)
    if problem == "append" and clean.hdim < ROTARY_VECTOR:
        return False
    padded = all(kernel.spec["pad"]["d"] and kernel.spec["pad"]["dv"] for kernel in candidates)
    return bool(candidates) and (padded or clean.hdim == clean.hdim_v == LARGEST)


def pose(arch: str, problem: str, clean: Clean) -> set[str]:
    """The kernels that were launched; what no kernel serves is refused."""
    if serves(arch, problem, clean):
        PROBLEMS[problem](dispatcher(arch, problem), clean)
        return {report.kernel for report in device.last_reports()}
    with pytest.raises(NoKernelError):
        PROBLEMS[problem](dispatcher(arch, problem), clean)
    return set()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("clean", HEADS_CLEAN if EVERY else HEADS_CLEAN[:1], ids=str)
@pytest.mark.parametrize("hdims", ALL if EVERY else FEW, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_nan_of_a_neighbour_stays_there(
    arch: str, problem: str, hdims: tuple[int, int], clean: tuple[int, int]
) -> None:
    pose(arch, problem, Clean(*hdims, *clean))


@pytest.mark.parametrize("arch", ARCHS)
def test_the_problems_launch_every_shipped_kernel(arch: str) -> None:
    launched = {name for problem in PROBLEMS for name in pose(arch, problem, Clean(LARGEST, LARGEST))}
    reached = {kernel.name: kernel for problem in PROBLEMS for kernel in kernels(arch, problem)}
    symbols = {name: f"kw_kernel_{kernel.identity[:16]}_" for name, kernel in reached.items()}
    missing = [name for name, symbol in symbols.items() if not any(one.startswith(symbol) for one in launched)]
    assert reached and missing == []
