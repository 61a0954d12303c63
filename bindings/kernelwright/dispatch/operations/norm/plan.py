"""Plans of norms, as users call them."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.plan import BoundPlan, NativePlan, OperationPlan
from kernelwright.dispatch.operations.norm.binder import NormBinder
from kernelwright.problems.norm.problem import NormProblem


class NormPlan(OperationPlan[NormProblem]):
    """A norm with its kernel. Threads may share a plan.

    ``plan(x, out=y, weight=w)`` and, for a problem with ``backward``, ``plan(x, dy=dy, out=dx, weight=w, dweight=dw)``
    take NumPy arrays, torch tensors, … of exactly the problem's rows, dtypes and strides, or the addresses of all of
    them.
    """

    __slots__ = ()

    def __init__(self, problem: NormProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        super().__init__(problem, made, NormBinder(problem, made.device.memory))

    def __call__(
        self, x: Any, *, out: Any, weight: Any = None, bias: Any = None, residual: Any = None, dy: Any = None,
        sum: Any = None, scales: Any = None, dweight: Any = None, dbias: Any = None, stream: int | None = None,
        workspace: int | None = None,
    ) -> Any:  # fmt: skip
        """Launch and return ``out``.

        :param x: (…, columns); ``residual``, ``dy``, ``out`` and ``sum`` have its rows.
        :param workspace: the address of ``workspace_bytes`` bytes, aligned to 256.
        :raises ArrayError: for arrays that do not fit the plan.
        :raises LaunchError: if the kernel fails.
        """
        self.launch((x, weight, bias, residual, dy, out, sum, scales, dweight, dbias), stream, workspace)
        return out

    def bind(
        self, x: Any, *, out: Any, weight: Any = None, bias: Any = None, residual: Any = None, dy: Any = None,
        sum: Any = None, scales: Any = None, dweight: Any = None, dbias: Any = None, stream: int | None = None,
    ) -> BoundPlan:  # fmt: skip
        """Bind the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        return self.bound((x, weight, bias, residual, dy, out, sum, scales, dweight, dbias), out, stream)
