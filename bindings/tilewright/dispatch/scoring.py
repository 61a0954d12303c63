"""A Python function as a selection provider."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.dispatch import dtypes, native
from tilewright.dispatch.errors import SelectionError
from tilewright.dispatch.manifest import KernelEntry
from tilewright.dispatch.problem import GemmProblem

_FAILED = 1


class ScoreCallback:
    """Wraps ``score(problem, candidates) -> scores`` for the native dispatcher, which calls it once per new problem.

    An exception inside becomes a failed selection there and is raised again here.
    """

    def __init__(
        self,
        score: Callable[[GemmProblem, Sequence[KernelEntry]], Sequence[float]],
        kernels: Mapping[str, KernelEntry],
    ) -> None:
        """``kernels`` maps identities to what ``score`` sees."""
        self._score = score
        self._kernels = kernels
        self._local = threading.local()  # the native side calls in the thread that selects
        self.native = native.Score(self._call)

    def _call(self, _user: Any, problem: Any, candidates: Any, count: int) -> int:
        try:
            entries = [self._kernels[candidates[i].kernel.contents.identity.decode()] for i in range(count)]
            scores = [float(score) for score in self._score(from_native(problem.contents), entries)]
            if len(scores) != count:
                raise SelectionError(f"selection returned {len(scores)} scores for {count} candidates")
            for index, score in enumerate(scores):
                candidates[index].score = score
        except BaseException as error:
            self._local.pending = error
            return _FAILED
        return native.OK

    def raise_pending(self) -> None:
        """Raise what the function raised, if it did."""
        pending: BaseException | None = getattr(self._local, "pending", None)
        self._local.pending = None
        if pending is not None:
            raise pending


def from_native(problem: native.GemmProblem) -> GemmProblem:
    """The Python problem of a C struct."""
    letters = "".join("rc"[value] for value in (problem.layout_a, problem.layout_b, problem.layout_c))
    names = {field: dtypes.NAMES[getattr(problem, field)] for field in ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")}
    return GemmProblem(
        problem.m, problem.n, problem.k, dtype=names["dtype_a"], layout=letters, **names, lda=problem.lda,
        ldb=problem.ldb, ldc=problem.ldc, alpha=problem.alpha, beta=problem.beta, split_k=problem.split_k,
    )  # fmt: skip
