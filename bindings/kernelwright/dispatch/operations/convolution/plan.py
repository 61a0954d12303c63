"""Plans of convolutions, as users call them."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.plan import BoundPlan, NativePlan, OperationPlan
from kernelwright.dispatch.operations.convolution.binder import ConvBinder
from kernelwright.problems.convolution.problem import ConvProblem


class ConvPlan(OperationPlan[ConvProblem]):
    """A convolution with its kernel. Threads may share a plan.

    ``plan(x, w, out=y)``, ``plan(dy, w, out=dx)`` and ``plan(x, dy, out=dw)``, depending on the problem's direction,
    take NumPy arrays, torch tensors, … of exactly the problem's shapes (in the order of its layout), dtypes and
    strides, or addresses as integers, which are checked only for null. Streams are as for :class:`Plan`.
    """

    __slots__ = ()

    def __init__(self, problem: ConvProblem, made: NativePlan) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        super().__init__(problem, made, ConvBinder(problem, made.device.memory))

    def __call__(
        self, a: Any, b: Any, out: Any, *, bias: Any = None, residual: Any = None, stream: int | None = None,
        workspace: int | None = None,
    ) -> Any:  # fmt: skip
        """Launch and return ``out``.

        :param a: x, or dy for backward data.
        :param b: w, or dy for backward weight.
        :param out: y, dx or dw; it may be ``residual`` but must not share memory with anything else. If beta is not 0,
            it holds the values that beta scales.
        :param bias: k values, if the problem has a bias.
        :param residual: a tensor like y, if the problem has a residual.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer.
        :param workspace: address of ``workspace_bytes`` bytes, aligned to 256, as for :class:`Plan`.
        :raises ArrayError: before the launch, for arrays that do not fit.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        self.launch((a, b, bias, residual, out), stream, workspace)
        return out

    def bind(
        self, a: Any, b: Any, out: Any, *, bias: Any = None, residual: Any = None, stream: int | None = None
    ) -> BoundPlan:
        """Bind the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        return self.bound((a, b, bias, residual, out), out, stream)
