"""Kernels of a library on a simulated device, one problem at a time, with everything around the result checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from amd.operands import Matrix, assert_close, assert_equal, element_type, exact_product, fill_integers, fill_normal
from tilewright.dispatch import Dispatcher, GemmProblem, KernelLibrary
from tilewright.dispatch.manifest import KernelEntry


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
        plan(a.address, b.address, (d if case.c_is_d else c).address if case.beta else None, out=d.address,
             workspace=self._workspace(plan.workspace_bytes))  # fmt: skip
        for matrix, bytes_before in zip((a, b, c), before, strict=True):
            assert matrix.memory.tobytes() == bytes_before, "an operand was written"
        d.check_surroundings()
        if case.normal:
            assert case.beta == 0
            assert_close(d, a, b, case.alpha)
        else:
            assert_equal(d, case.alpha * exact_product(a, b) + case.beta * old)
        return d.values.copy()

    def _workspace(self, size: int) -> int | None:
        if size == 0:
            return None
        self._scratch = Matrix("r", 1, math.ceil(size / 4), math.ceil(size / 4), np.dtype(np.float32))
        return self._scratch.address


def cases(kernel: KernelEntry) -> list[Case]:
    """What a kernel without split K is run on: 1 to 9 K loops, tails and gaps wherever it takes them."""
    spec = kernel.spec
    tile, pad = spec["tile"], spec["pad"]
    vector = 16  # a multiple of every kernel's vectors
    tail = {axis: vector if pad[axis] else 0 for axis in "mnk"}
    first = 2 if spec["pipeline"] == "compv6" else 1
    m, n, k = (tile[axis] for axis in "mnk")
    direct = spec["pipeline"] == "comp_async"
    gap = 16 if direct else 4
    a_col, b_row = spec["layout"][0] == "c", spec["layout"][1] == "r"
    odd_m = (0 if a_col else 3) if pad["m"] else 0  # rows of D; only a column-major A is read along m in vectors
    loops = [
        Case(m - tail["m"] - odd_m, n - tail["n"], count * k - (tail["k"] if count % 2 else 0), gap * (count % 3))
        for count in range(first, 10)
    ]
    del b_row
    more = [
        Case(m + tail["m"] + odd_m, 2 * n - tail["n"], first * k + tail["k"], gap),
        Case(2 * m - tail["m"] - odd_m, n + tail["n"], 3 * k, 4 * gap, normal=True),
        Case(m, n, (first + 1) * k, normal=True),
    ]
    if all(pad.values()):
        more.append(Case(vector if a_col else 1, vector, first * k if first > 1 else vector, gap))
    return loops + more


def split_cases(kernel: KernelEntry) -> list[Case]:
    """What a kernel with split K is run on beyond that."""
    plain = [replace(case, split_k=1, alpha=2.0) for case in cases(kernel)[::3] if not case.normal]
    tile = kernel.spec["tile"]
    m, n, k = (tile[axis] for axis in "mnk")
    found = [
        Case(m - 3, n - 12, loops * k - (16 if loops % 2 else 0), 4 * (loops % 2), split_k=slices)
        for loops, slices in ((2, 2), (3, 2), (3, 3), (5, 2), (5, 4), (7, 3), (9, 2), (9, 5), (9, 9))
    ]
    found += [
        Case(m + 5, n + 20, 4 * k, 8, split_k=3, alpha=-0.5, beta=2.0),
        Case(m, n, 4 * k, split_k=2, alpha=2.0, beta=1.0, c_is_d=True),
        Case(m - 1, n - 4, 5 * k, split_k=3, normal=True),
        Case(1, 4, 2 * k, split_k=2),
    ]
    return plain + found
