"""Kernels of a library on a simulated device, one problem at a time, with everything around the result checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gemm.amd.operands import (
    Matrix,
    assert_close,
    assert_equal,
    element_type,
    exact_product,
    fill_integers,
    fill_normal,
)
from kernelwright.dispatch import Dispatcher, GemmProblem, KernelEntry, KernelLibrary
from kernelwright.dispatch.arrays.dtypes import ITEMSIZE


@dataclass(frozen=True)
class Case:
    """A problem for a kernel. ``gap`` is what each leading dimension has beyond its extent, in bytes."""

    m: int
    n: int
    k: int
    gap: int = 0
    normal: bool = False
    split_k: int = 1
    alpha: float = 1.0
    beta: float = 0.0
    c_is_d: bool = False

    def __str__(self) -> str:
        """For the names of tests."""
        text = f"{self.m}x{self.n}x{self.k}" + (f"+{self.gap}" if self.gap else "") + ("~" if self.normal else "")
        text += f"/{self.split_k}" if self.split_k != 1 else ""
        return text + (f"*{self.alpha:g}+{self.beta:g}" if (self.alpha, self.beta) != (1, 0) else "")


class Bench:
    """Runs one kernel of a library in the simulator."""

    def __init__(self, library: KernelLibrary, kernel: KernelEntry) -> None:
        self.kernel, self.arch, self.spec = kernel, library.arch, kernel.spec
        self.dispatcher = Dispatcher(library, device=f"sim:{library.arch}", selection=kernel.identity)
        self.layout = str(self.spec["layout"])
        self.types = {x: element_type(str(self.spec[f"dtype_{x}"]), self.arch) for x in "abc"}

    def problem(self, case: Case) -> GemmProblem:
        """The case as the dispatcher is asked."""
        spec, (a, b, c) = self.spec, self.layout
        extents = {"a": (case.m, case.k), "b": (case.k, case.n), "c": (case.m, case.n)}
        leading = {
            x: (extents[x][1] if letter == "r" else extents[x][0]) + case.gap // self.types[x].itemsize
            for x, letter in (("a", a), ("b", b), ("c", c))
        }
        dtypes = {f"dtype_{x}": str(spec[f"dtype_{x}"]) for x in ("a", "b", "c", "acc")}
        return GemmProblem(
            *(case.m, case.n, case.k),
            layout=self.layout,
            **dtypes,
            **{f"ld{x}": value for x, value in leading.items()},
            split_k=case.split_k,
            alpha=case.alpha,
            beta=case.beta,
        )

    def run(self, case: Case, seed: int = 0) -> np.ndarray:
        """Run the case, check D and everything around it; returns D's bytes."""
        problem = self.problem(case)
        rng = np.random.default_rng([seed, case.m, case.n, case.k])
        a = Matrix(self.layout[0], case.m, case.k, problem.lda or 0, self.types["a"])
        b = Matrix(self.layout[1], case.k, case.n, problem.ldb or 0, self.types["b"])
        c = Matrix(self.layout[2], case.m, case.n, problem.ldc or 0, self.types["c"])
        d = Matrix(self.layout[2], case.m, case.n, problem.ldc or 0, self.types["c"])
        fill: Callable[[Matrix, np.random.Generator], None] = fill_normal if case.normal else fill_integers
        for matrix in (a, b):
            fill(matrix, rng)
        if case.beta:
            fill(c, rng)
        if case.c_is_d:
            d.values[...] = c.values
        before = [matrix.memory.tobytes() for matrix in (a, b, c)]
        old = c.values.astype(np.float64) if case.beta else 0.0
        plan = self.dispatcher.plan(problem)
        assert plan.kernel.identity == self.kernel.identity
        old_at = (d if case.c_is_d else c).address if case.beta else None
        slices = Matrix("r", 1, plan.workspace_bytes // 4, plan.workspace_bytes // 4, np.dtype(np.float32))
        workspace = slices.address if plan.workspace_bytes else None
        plan(a.address, b.address, old_at, out=d.address, workspace=workspace)
        for matrix, bytes_before in zip((a, b, c), before, strict=True):
            assert matrix.memory.tobytes() == bytes_before, "an operand was written"
        for matrix in (d, slices):
            matrix.check_surroundings()
        if case.normal and d.dtype.kind != "i":
            assert case.beta == 0
            assert_close(d, a, b, case.alpha)
        else:
            assert_equal(d, case.alpha * exact_product(a, b) + case.beta * old)
        return d.values.copy()


def cases(kernel: KernelEntry) -> list[Case]:
    """What a kernel without split K is run on: 1 to 9 K loops, tails and gaps wherever it takes them."""
    spec = kernel.spec
    tile, pad = spec["tile"], spec["pad"]
    m, n, k = (tile[axis] for axis in "mnk")
    first = 2 if spec["pipeline"] == "compv6" else 1
    vector = 16 // ITEMSIZE[spec["dtype_a"]]  # elements of the widest load, and at least those of a store
    gap = 16 if spec["pipeline"] == "comp_async" else 4
    if spec["pipeline"] == "narrow":
        vector, gap = 1, 3

    def cut(axis: str, vectors: int) -> int:
        return vectors * vector % tile[axis] if pad[axis] else 0

    def rows(count: int) -> int:  # only a column-major A is read along m in vectors
        return 0 if not pad["m"] else count * vector % m if spec["layout"][0] == "c" else 2 * count + 1

    loops = [
        Case(m - rows(count), n - cut("n", count), count * k - cut("k", count - 1), gap * (count % 3))
        for count in range(first, 10)
    ]
    more = [
        Case(m + rows(2), 2 * n - cut("n", 3), first * k + cut("k", 1), gap),
        Case(2 * m - rows(1), n + cut("n", 1), 3 * k, 4 * gap, normal=True),
        Case(m, n, (first + 1) * k, normal=True),
    ]
    if all(pad.values()):
        least = (first - 1) * k + vector
        more.append(Case(vector if spec["layout"][0] == "c" else 1, vector, least, gap))
    empty = Case(m - rows(1), n - cut("n", 1), 0, gap)  # D = beta C
    return [*loops, *more, empty, *([replace(empty, beta=-2.0)] if spec["dtype_acc"] != "int32" else [])]


def split_cases(kernel: KernelEntry) -> list[Case]:
    """What a kernel with split K is run on: what others are, scaled; 1 to 9 slices of 1 to 9 K loops; C."""
    plain = [replace(case, alpha=2.0) for case in cases(kernel)[::3]]
    tile, layout = kernel.spec["tile"], kernel.spec["layout"]
    m, n, k = (tile[axis] for axis in "mnk")
    vector = 16 // ITEMSIZE[kernel.spec["dtype_a"]]
    rows, columns = (vector if layout[0] == "c" else 3), (vector if layout[1] == "r" else 12)
    cut = vector if kernel.spec["pad"]["k"] else 0
    least = 2 if kernel.spec["pipeline"] == "compv6" else 1  # K tiles of a slice
    sliced = [
        Case(m - rows, n - columns, loops * k - (cut if loops % 2 else 0), 16 * (loops % 2), split_k=slices)
        for loops, slices in ((2, 2), (3, 2), (3, 3), (5, 2), (5, 4), (7, 3), (9, 2), (9, 5), (9, 9))
        if loops // slices >= least
    ]
    sliced += [
        Case(m + rows, n + columns, 6 * k, 16, split_k=3, alpha=-0.5, beta=2.0),
        Case(m, n, 4 * k, split_k=2, alpha=2.0, beta=1.0, c_is_d=True),
        Case(m - rows, n - columns, 6 * k, split_k=3, normal=True),
        Case(rows, columns, 4 * k, split_k=2),
        Case(m - rows, n - columns, 0, 16, split_k=2),
    ]
    if kernel.spec["dtype_acc"] == "int32":  # sums of integers are not scaled
        return [case for case in sliced if (case.alpha, case.beta) == (1, 0)]
    return plain + sliced


def cases_of(kernel: KernelEntry) -> list[Case]:
    """Everything that a kernel is run on."""
    return split_cases(kernel) if kernel.spec.get("split_k") else cases(kernel)
