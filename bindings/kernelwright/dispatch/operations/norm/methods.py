"""The norm calls of :class:`kernelwright.dispatch.Dispatcher`."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.native_dispatcher import Methods
from kernelwright.dispatch.operations.norm.calls import NormCalls, NormOptions


class NormMethods(Methods):
    """RMS norm, layer norm and their gradients. Takes arrays of every library that :meth:`Dispatcher.gemm` takes."""

    _norm: NormCalls

    def _begin(self) -> None:
        super()._begin()
        self._norm = NormCalls(self._core)

    def rms_norm(
        self,
        x: Any,
        weight: Any = None,
        out: Any = None,
        *,
        residual: Any = None,
        sum: Any = None,
        scales: Any = None,
        dtype: str | None = None,
        epsilon: float = 1e-6,
        stream: int | None = None,
    ) -> Any:
        """Compute s / sqrt(mean(s * s) + epsilon) * weight for each row of s = x + residual, copying no operand.

        :param x: (…, columns) of fp32, fp16 or bf16, with equally spaced rows and contiguous columns.
        :param weight: (columns,), in the dtype of ``x`` or fp32.
        :param out: the result, with the shape of ``x``, allocated when not given; may be ``x`` itself.
        :param residual: tensor with the shape and dtype of ``x``, added to it first.
        :param sum: x + residual, rounded to their dtype; allocated when not given; may be either of them.
        :param scales: fp32 scales of a quantised result, one per row; allocated when not given.
        :param dtype: ``int8`` or ``fp8`` for a result that is quantised row by row: ``out * scales`` is the norm.
        :param epsilon: added to the mean of squares.
        :param stream: as for :meth:`Dispatcher.gemm`.
        :returns: ``out``; with a residual or scales, a tuple of those of ``out``, ``sum`` and ``scales`` that exist.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises ProblemError: for numbers and words that describe no norm.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel fails.
        """
        options = NormOptions("rms", False, dtype, epsilon)
        return self._norm.run((x, weight, None, residual, None, out, sum, scales, None, None), options, stream)

    def layer_norm(
        self,
        x: Any,
        weight: Any = None,
        bias: Any = None,
        out: Any = None,
        *,
        residual: Any = None,
        sum: Any = None,
        scales: Any = None,
        dtype: str | None = None,
        epsilon: float = 1e-5,
        stream: int | None = None,
    ) -> Any:
        """Compute (s - mean(s)) / sqrt(mean((s - mean(s))^2) + epsilon) * weight + bias per row of s = x + residual.

        :param bias: (columns,), in the dtype of the weight.

        Everything else is as for :meth:`rms_norm`.
        """
        options = NormOptions("layer", False, dtype, epsilon)
        return self._norm.run((x, weight, bias, residual, None, out, sum, scales, None, None), options, stream)

    def rms_norm_backward(
        self,
        dy: Any,
        x: Any,
        weight: Any = None,
        out: Any = None,
        *,
        dsum: Any = None,
        dweight: Any = None,
        epsilon: float = 1e-6,
        stream: int | None = None,
    ) -> Any:
        """Compute the gradients of :meth:`rms_norm`: dx, and dweight if there is a weight.

        :param dy: gradient of the result, with the shape and dtype of ``x``.
        :param x: the normalised operand: with a residual, the sum.
        :param out: dx, with the shape of ``x``, allocated when not given; may be ``dy`` or ``dsum``.
        :param dsum: the gradient of the sum, added to dx.
        :param dweight: (columns,), allocated when not given.
        :returns: dx, or a tuple of dx and dweight.

        Everything else is as for :meth:`rms_norm`.
        """
        options = NormOptions("rms", True, None, epsilon)
        return self._norm.run((x, weight, None, dsum, dy, out, None, None, dweight, None), options, stream)

    def layer_norm_backward(
        self,
        dy: Any,
        x: Any,
        weight: Any = None,
        out: Any = None,
        *,
        dsum: Any = None,
        dweight: Any = None,
        dbias: Any = None,
        epsilon: float = 1e-5,
        stream: int | None = None,
    ) -> Any:
        """Compute the gradients of :meth:`layer_norm`: dx, dweight if there is a weight, dbias if requested.

        :param dbias: (columns,), an array of the weight's dtype to write to; None if there is no bias.
        :returns: dx, or a tuple of those of dx, dweight and dbias that exist.

        Everything else is as for :meth:`rms_norm_backward`.
        """
        options = NormOptions("layer", True, None, epsilon)
        return self._norm.run((x, weight, None, dsum, dy, out, None, None, dweight, dbias), options, stream)
