"""Convolutions computed by torch's own operators, for :mod:`kernelwright.torch.operators.convolution`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import activations
from torch.nn import functional  # pants: no-infer-dep

_PUBLIC = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_aten = torch.ops.aten


def public(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, dims: int, stride: Any,
    padding: Any, dilation: Any, groups: int, activation: str | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of ``kernelwright.torch.conv1d`` to ``conv3d``; the result has torch's own memory format."""
    result = _PUBLIC[dims](x, w, bias, stride, padding, dilation, groups)
    return activations.apply(activation, result if residual is None else result + residual)


def forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, stride: Sequence[int],
    pad_left: Sequence[int], pad_right: Sequence[int], dilation: Sequence[int], groups: int, activation: str = "none",
    dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of ``kernelwright::conv``."""
    with torch.no_grad():
        x, both = _padded(x, pad_left, pad_right)
        result = _aten.convolution(x, w, bias, stride, both, dilation, False, [0] * len(both), groups)
        return activations.apply(activation, result if residual is None else result + residual)


def backward_data(
    dy: torch.Tensor, w: torch.Tensor, size: Sequence[int], stride: Sequence[int], pad_left: Sequence[int],
    pad_right: Sequence[int], dilation: Sequence[int], groups: int, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of ``kernelwright::conv_backward_data``."""
    with torch.no_grad():
        # Only the extents of the input are read.
        x = dy.new_empty(()).expand(dy.shape[0], w.shape[1] * groups, *size)
        x, both = _padded(x, pad_left, pad_right)
        dx = _aten.convolution_backward(
            dy, x, w, None, stride, both, dilation, False, [0] * len(both), groups, [True, False, False]
        )[0]
        for at, (left, extent) in enumerate(zip(pad_left, size, strict=True)):
            if dx.shape[at + 2] != extent:
                dx = dx.narrow(at + 2, left, extent)
        return dx


def backward_weight(
    x: torch.Tensor, dy: torch.Tensor, points: Sequence[int], stride: Sequence[int], pad_left: Sequence[int],
    pad_right: Sequence[int], dilation: Sequence[int], groups: int, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of ``kernelwright::conv_backward_weight``."""
    with torch.no_grad():
        x, both = _padded(x, pad_left, pad_right)
        w = dy.new_empty(()).expand(dy.shape[1], x.shape[1] // groups, *points)
        return _aten.convolution_backward(
            dy, x, w, None, stride, both, dilation, False, [0] * len(both), groups, [False, True, False]
        )[1]


def _padded(x: torch.Tensor, left: Sequence[int], right: Sequence[int]) -> tuple[torch.Tensor, Sequence[int]]:
    """The input, padded if the sides differ, and the padding for torch to add on both sides."""
    if list(left) == list(right):
        return x, left
    sides = [side for pair in zip(left[::-1], right[::-1], strict=True) for side in pair]
    return functional.pad(x, sides), [0] * len(left)
