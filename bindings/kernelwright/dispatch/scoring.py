"""A Python function as a selection provider."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.dispatch import dtypes, native
from kernelwright.dispatch.errors import SelectionError
from kernelwright.dispatch.grouped import GroupedGemmProblem
from kernelwright.dispatch.manifest import KernelEntry
from kernelwright.dispatch.problem import GemmProblem

_FAILED = 1


class ScoreCallback:
    """Wraps ``score(problem, candidates) -> scores`` for the native dispatcher, which calls it once per new problem.

    An exception inside becomes a failed selection there and is raised again here.
    """

    def __init__(
        self,
        score: Callable[[Any, Sequence[KernelEntry]], Sequence[float]],
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
            posed: Any = native.GemmProblem.from_address(problem)
            if posed.op == native.OP_GROUPED_GEMM:
                posed = native.GroupedGemmProblem.from_address(problem)
            scores = [float(score) for score in self._score(from_native(posed), entries)]
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


def from_native(problem: native.GemmProblem | native.GroupedGemmProblem) -> GemmProblem | GroupedGemmProblem:
    """The Python problem of a C struct."""
    letters = "".join("rc"[value] for value in (problem.layout_a, problem.layout_b, problem.layout_c))
    names = {field: dtypes.NAMES[getattr(problem, field)] for field in ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")}
    common: dict[str, Any] = {"dtype": names["dtype_a"], "layout": letters, **names}
    common.update(alpha=problem.alpha, beta=problem.beta)
    if isinstance(problem, native.GroupedGemmProblem):
        groups = [problem.groups[index] for index in range(problem.group_count)]
        return GroupedGemmProblem([(g.m, g.n, g.k, g.lda, g.ldb, g.ldc) for g in groups], **common)
    return GemmProblem(
        problem.m, problem.n, problem.k, **common, lda=problem.lda, ldb=problem.ldb, ldc=problem.ldc,
        split_k=problem.split_k, batch=problem.batch, stride_a=problem.stride_a, stride_b=problem.stride_b,
        stride_c=problem.stride_c, num_d=problem.num_d, d_op=dtypes.D_OPS[problem.d_op],
        activation=dtypes.ACTIVATIONS[problem.activation], ld_multi_d=problem.ld_multi_d[: problem.num_d],
        stride_multi_d=problem.stride_multi_d[: problem.num_d], b_format=problem.b_format,
    )  # fmt: skip
