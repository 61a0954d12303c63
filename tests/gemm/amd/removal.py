"""A shipped kernel that is launched whole and without one of its barriers or waits."""

from __future__ import annotations

from functools import cache, partial

from gemm.amd.direct import Product
from gemm.amd.shipped import code_objects, named
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.errors import Fault
from kernelwright.simulator.run.report import LaunchReport

# Numbers of K loops that are tried, those that reach most of a pipeline first.
LOOPS = (3, 4, 1, 2, 5)


class Subject:
    """A kernel that is launched for one tile and some K loops, whole or patched."""

    def __init__(self, arch: str, name: str) -> None:
        entry = named(arch, name)
        assert entry.resources is not None
        self.arch, self.spec, self.block = arch, entry.spec, entry.resources["block_size"]
        self.symbol = f"kw_kernel_{entry.identity[:16]}_gemm"
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
