"""``torch.vmap`` rules of convolutions.

Operands that share the weights become more images of one convolution. If weights differ, the convolutions become groups
of a single one: all channels are concatenated, and the number of groups is multiplied by the batch size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.operators.convolution_launch import Window, channels_last

_ops = torch.ops.kernelwright


def forward(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[torch.Tensor, int]:
    """The rule for ``kernelwright::conv``."""
    x, w, bias, residual, *window, activation, dispatcher = arguments
    size = info.batch_size
    if dims[1] is None and dims[2] is None:
        x, residual = _more_images(x, dims[0], size), _more_images(residual, dims[3], size)
        result = _ops.conv(x, w, bias, residual, *window, activation, dispatcher)
        return result.unflatten(0, (size, -1)), 0
    x, residual = _side_by_side(x, dims[0], size), _side_by_side(residual, dims[3], size)
    w, bias = _stacked(w, dims[1], size), _stacked(bias, dims[2], size)
    result = _ops.conv(x, channels_last(w), bias, residual, *_more_groups(window, size), activation, dispatcher)
    return result.unflatten(1, (size, -1)), 1


def backward_data(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[torch.Tensor, int]:
    """The rule for ``kernelwright::conv_backward_data``."""
    dy, w, given, *window, dispatcher = arguments
    size = info.batch_size
    if dims[1] is None:
        dy = _more_images(dy, dims[0], size)
        return _ops.conv_backward_data(dy, w, given, *window, dispatcher).unflatten(0, (size, -1)), 0
    dy, w = _side_by_side(dy, dims[0], size), channels_last(_stacked(w, dims[1], size))
    result = _ops.conv_backward_data(dy, w, given, *_more_groups(window, size), dispatcher)
    return result.unflatten(1, (size, -1)), 1


def backward_weight(info: Any, dims: Sequence[Any], *arguments: Any) -> tuple[torch.Tensor, int]:
    """The rule for ``kernelwright::conv_backward_weight``."""
    x, dy, given, *window, dispatcher = arguments
    size = info.batch_size
    x, dy = (_side_by_side(one, dim, size) for one, dim in ((x, dims[0]), (dy, dims[1])))
    result = _ops.conv_backward_weight(x, dy, given, *_more_groups(window, size), dispatcher)
    return result.unflatten(0, (size, -1)), 0


def _first(operand: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return operand.expand(size, *operand.shape) if dim is None else operand.movedim(dim, 0)


def _more_images(operand: torch.Tensor | None, dim: int | None, size: int) -> torch.Tensor | None:
    """Merge (n, channels, …) of each element into (size * n, channels, …)."""
    return None if operand is None else channels_last(_first(operand, dim, size).flatten(0, 1))


def _side_by_side(operand: torch.Tensor | None, dim: int | None, size: int) -> torch.Tensor | None:
    """Merge (n, channels, …) of each element into (n, size * channels, …)."""
    return None if operand is None else channels_last(_first(operand, dim, size).movedim(0, 1).flatten(1, 2))


def _stacked(operand: torch.Tensor | None, dim: int | None, size: int) -> torch.Tensor | None:
    """Merge weights or biases (k, …) of each element into (size * k, …)."""
    return None if operand is None else _first(operand, dim, size).flatten(0, 1)


def _more_groups(window: Sequence[Any], size: int) -> Window:
    return Window(*window)._replace(groups=window[-1] * size)
