"""The simulator notices when a kernel lacks one of its waits: each is taken out, one at a time.

Every fifth wait on gfx942; KERNELWRIGHT_EVERY=1 takes all waits on all architectures.
"""

from __future__ import annotations

import os

import pytest

from gemm.amd.patched import idle_waits, waits, without
from gemm.amd.removal import LOOPS, Subject
from gemm.amd.shipped import ARCHS, library
from kernelwright.simulator.checks.options import Checks

EVERY = bool(os.environ.get("KERNELWRIGHT_EVERY"))
STEP = 1 if EVERY else 5


@pytest.mark.thorough(instead="tests/gemm/amd/barrier_removal_test.py")
@pytest.mark.parametrize("arch", [arch for arch in ARCHS if EVERY or arch == "gfx942"])
def test_each_wait_is_noticed_when_it_is_gone(arch: str) -> None:
    """But for those that wait for nothing, or stand right before a barrier, where nothing may be left to wait for."""
    kernel = next(kernel for kernel in library(arch).kernels if "fp16_rcr_compv3" in kernel.name)
    subject = Subject(arch, kernel.name)
    noticed, reached, idle = 0, 0, idle_waits(subject.code, subject.symbol)
    for wait, before_barrier in waits(subject.code, subject.symbol)[::STEP]:
        image = without(subject.image, wait)
        seen: set[bool | None] = set()
        for loops in LOOPS:
            seen.add(subject.noticed(image, loops, "wait", Checks(waits=True)))
            if True in seen:
                break
        spare = before_barrier or wait.pc in idle
        assert True in seen or spare or False not in seen, f"nobody misses {wait} at {wait.pc:#x}"
        assert True not in seen or wait.pc not in idle, f"{wait} at {wait.pc:#x} waits for something"
        noticed += True in seen
        reached += seen != {None} and wait.pc not in idle
    assert noticed > 0.8 * reached > 20 / STEP
