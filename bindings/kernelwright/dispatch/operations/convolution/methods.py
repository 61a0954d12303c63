"""The convolution calls of :class:`kernelwright.dispatch.Dispatcher`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.dispatch.core.native_dispatcher import Methods
from kernelwright.dispatch.operations.convolution.calls import ConvCalls, ConvOptions, Padding
from kernelwright.problems.literals import Activation, ConvLayout


class ConvMethods(Methods):
    """Grouped convolution and its gradients. Takes arrays of every library that :meth:`Dispatcher.gemm` takes."""

    _conv: ConvCalls

    def _begin(self) -> None:
        super()._begin()
        self._conv = ConvCalls(self._core)

    def conv_forward(
        self,
        x: Any,
        w: Any,
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: Any = None,
        residual: Any = None,
        activation: Activation = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: ConvLayout | None = None,
        stream: int | None = None,
    ) -> Any:
        """Compute activation(alpha * convolution of x by w + beta * out + bias + residual), copying no operand.

        Shapes are in the order of the layout, by default with channels innermost, in one, two or three dimensions.

        :param x: input (n, h, w, c); any memory strides with contiguous channels.
        :param w: weights (k, filter_h, filter_w, c / groups), dense; (k, c / groups, filter_h, filter_w) in ``ngchw``.
        :param out: the result (n, out_h, out_w, k), allocated when not given; if beta is not 0, it holds the values
            that beta scales.
        :param stride: one number, or one per dimension; ``dilation`` likewise.
        :param padding: one number, or per dimension a number or a (left, right) pair.
        :param bias: k values; ``residual`` is a tensor like ``out``, and may be ``out``.
        :param activation: an activation of :class:`GemmProblem`.
        :param layout: ``nwgc``, ``nhwgc``, ``ndhwgc`` or ``ngchw`` (depthwise).
        :param stream: as for :meth:`Dispatcher.gemm`.
        :returns: ``out``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises ProblemError: for numbers that describe no convolution.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        options = ConvOptions(
            "forward", None, stride, padding, dilation, groups, layout, activation, alpha, beta, None
        )  # fmt: skip
        return self._conv.run(x, w, bias, residual, out, options, stream)

    def conv_backward_data(
        self,
        dy: Any,
        w: Any,
        size: int | Sequence[int],
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: ConvLayout | None = None,
        stream: int | None = None,
    ) -> Any:
        """Compute the gradient of the input: alpha * (dy, w) + beta * out. Every point is written.

        :param dy: gradient of the output (n, out_h, out_w, k).
        :param size: spatial extents of x, which a stride above 1 leaves ambiguous.
        :param out: dx (n, h, w, c), allocated when not given.

        Everything else is as for :meth:`conv_forward`.
        """
        options = ConvOptions(
            "backward_data", size, stride, padding, dilation, groups, layout, "none", alpha, beta, None
        )  # fmt: skip
        return self._conv.run(dy, w, None, None, out, options, stream)

    def conv_backward_weight(
        self,
        x: Any,
        dy: Any,
        filter: int | Sequence[int],
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        split_k: int = 0,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: ConvLayout | None = None,
        stream: int | None = None,
    ) -> Any:
        """Compute the gradient of the weights: alpha * (x, dy) + beta * out.

        :param x: input (n, h, w, c); ``dy`` is the gradient of the output (n, out_h, out_w, k).
        :param filter: filter extents, which a stride above 1 leaves ambiguous.
        :param out: dw (k, filter_h, filter_w, c / groups), allocated when not given.
        :param split_k: number of slices of the sum, reduced at the end; 0 lets the dispatcher choose.

        Everything else is as for :meth:`conv_forward`.
        """
        options = ConvOptions(
            "backward_weight", filter, stride, padding, dilation, groups, layout, "none", alpha, beta, split_k
        )  # fmt: skip
        return self._conv.run(x, dy, None, None, out, options, stream)
