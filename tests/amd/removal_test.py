"""The simulator notices when a kernel lacks one of its barriers or waits: each is taken out, one at a time.

One kernel per pipeline on two architectures; TILEWRIGHT_EVERY=1 takes all.
"""

from __future__ import annotations

import os
from functools import cache, partial

import pytest

from amd.direct import Product
from amd.patched import barriers, waits, without
from amd.shipped import ARCHS, code_objects, library
from amd.variants import is_plain
from tilewright.dispatch.manifest import KernelEntry
from tilewright.simulator.checks import Checks
from tilewright.simulator.errors import Fault
from tilewright.simulator.object_file import CodeObject
from tilewright.simulator.report import LaunchReport

EVERY = bool(os.environ.get("TILEWRIGHT_EVERY"))
USUAL = ("gfx942", "gfx1201")
LOOPS = (3, 4, 1, 2, 5)
# Their two LDS buffers take turns, so at the end some barriers separate nothing.
SPARE_BARRIERS = ("compv4", "comp_async")


def chosen(arch: str) -> list[KernelEntry]:
    """The kernels that are tried: those without a variant, whose barriers are the pipeline's."""
    kernels = {}
    for kernel in filter(is_plain, library(arch).kernels):
        kernels.setdefault(kernel.name if EVERY else kernel.spec["pipeline"], kernel)
    return list(kernels.values())


KERNELS = [(arch, kernel.name) for arch in ARCHS if EVERY or arch in USUAL for kernel in chosen(arch)]


class Subject:
    """A kernel that is launched for one tile and some K loops, whole or patched."""

    def __init__(self, arch: str, name: str) -> None:
        (entry,) = (kernel for kernel in library(arch).kernels if kernel.name == name)
        assert entry.resources is not None
        self.arch, self.spec, self.block = arch, entry.spec, entry.resources["block_size"]
        self.symbol = f"tw_kernel_{entry.identity[:16]}_gemm"
        self.image, self.code = self._found()
        self.whole = cache(partial(self.launch, self.image))

    def _found(self) -> tuple[bytes, CodeObject]:
        ((image, code),) = ((image, code) for image, code in code_objects(self.arch) if self.symbol in code.kernels)
        return image, code

    def launch(
        self,
        image: bytes,
        loops: int,
        *,
        checks: Checks = Checks(),  # noqa: B008  (frozen)
        seed: int | None = None,
    ) -> tuple[LaunchReport, bool]:
        """The report, and whether the result is right."""
        spec, tile = self.spec, self.spec["tile"]
        result = spec["dtype_acc"] if spec.get("split_k") else spec["dtype_c"]
        sizes = (tile["m"], tile["n"], tile["k"] * loops)
        product = Product(self.arch, *sizes, layout=spec["layout"], dtype=spec["dtype_a"], dtype_d=result)
        report = product.launch(
            image, self.symbol, tile=(tile["m"], tile["n"]), block=self.block, checks=checks, seed=seed
        )
        return report, product.right()

    def noticed(self, image: bytes, loops: int, kind: str, checks: Checks) -> bool | None:
        """Whether the checks stop the patched kernel, and not the whole one; None if that does not get there."""
        whole, right = self.whole(loops, checks=checks)
        assert right
        try:
            patched, _ = self.launch(image, loops, checks=checks)
        except Fault:
            return True
        return False if patched.counts[kind] < whole.counts[kind] else None


@pytest.mark.parametrize(("arch", "kernel"), KERNELS)
def test_each_barrier_is_noticed_when_it_is_gone(arch: str, kernel: str) -> None:
    subject = Subject(arch, kernel)
    spare, found = 0, barriers(subject.code, subject.symbol)
    assert len(found) >= 8
    for barrier in found:
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
    assert spare == 0 or (subject.spec["pipeline"] in SPARE_BARRIERS and spare < len(found) / 4)


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
