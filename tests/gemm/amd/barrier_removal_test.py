"""The simulator notices when a kernel lacks one of its barriers: each is taken out, one at a time.

One kernel per pipeline, on CDNA or on RDNA, and every second barrier; KERNELWRIGHT_EVERY=1 takes all.
"""

from __future__ import annotations

import os

import pytest

from gemm.amd.patched import barriers, without
from gemm.amd.removal import LOOPS, Subject
from gemm.amd.shipped import ARCHS, library
from gemm.amd.variants import is_plain
from kernelwright.dispatch import KernelEntry
from kernelwright.simulator.checks.options import Checks

EVERY = bool(os.environ.get("KERNELWRIGHT_EVERY"))
STEP = 1 if EVERY else 2
USUAL = {"gfx942": ("compv4",), "gfx1201": ("compv3",)}
# Their two LDS buffers take turns, so at the end some barriers separate nothing.
SPARE_BARRIERS = ("compv4", "comp_async")


def chosen(arch: str) -> list[KernelEntry]:
    """The kernels that are tried: those without a variant, whose barriers are the pipeline's."""
    kernels = {}
    for kernel in filter(is_plain, library(arch).kernels):
        if EVERY or kernel.spec["pipeline"] in USUAL.get(arch, ()):
            kernels.setdefault(kernel.name if EVERY else kernel.spec["pipeline"], kernel)
    return list(kernels.values())


KERNELS = [(arch, kernel.name) for arch in ARCHS for kernel in chosen(arch)]


@pytest.mark.parametrize(("arch", "kernel"), KERNELS)
def test_each_barrier_is_noticed_when_it_is_gone(arch: str, kernel: str) -> None:
    subject = Subject(arch, kernel)
    spare, sampled = 0, barriers(subject.code, subject.symbol)[::STEP]
    assert len(sampled) >= 8 / STEP
    for barrier in sampled:
        image, tried = without(subject.image, *barrier), 0
        for loops in LOOPS:
            noticed = subject.noticed(image, loops, "barrier", Checks(races=True))
            tried += noticed is not None
            if noticed:
                break
            if noticed is False:
                assert all(subject.launch(image, loops, seed=seed)[1] for seed in range(3)), "a race was not noticed"
        else:
            spare += 1
        assert tried, f"no K loop count reaches the barrier at {barrier[0].pc:#x}"
    assert spare == 0 or (subject.spec["pipeline"] in SPARE_BARRIERS and spare < len(sampled) / 4)
