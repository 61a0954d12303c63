"""The simulator notices when a kernel lacks one of its waits: each is taken out, one at a time."""

from __future__ import annotations

import pytest

from amd.patched import waits, without
from amd.removal import LOOPS, Subject
from amd.shipped import ARCHS, library
from tilewright.simulator.checks import Checks


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if arch == "gfx942"])
def test_each_wait_is_noticed_when_it_is_gone(arch: str) -> None:
    """But for those right before a barrier, where nothing may be left to wait for."""
    kernel = next(kernel for kernel in library(arch).kernels if "fp16_rcr_compv3" in kernel.name)
    subject = Subject(arch, kernel.name)
    noticed, reached = 0, 0
    for wait, before_barrier in waits(subject.code, subject.symbol):
        image = without(subject.image, wait)
        seen: set[bool | None] = set()
        for loops in LOOPS:
            seen.add(subject.noticed(image, loops, "wait", Checks(waits=True)))
            if True in seen:
                break
        assert True in seen or before_barrier or False not in seen, f"nobody misses {wait} at {wait.pc:#x}"
        noticed += True in seen
        reached += seen != {None}
    assert noticed > 0.8 * reached > 20
