"""From torch's tensors to launches of convolutions: memory formats, windows, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch import dispatchers
from kernelwright.torch.operator import plain

WINDOW_SCHEMA = "int[] stride, SymInt[] pad_left, SymInt[] pad_right, int[] dilation, int groups"
"""The fields of :class:`Window` as torch writes arguments."""

# By number of dimensions:
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_ORDERS = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


class Window(NamedTuple):
    """Which input points an output point meets: arguments of all three operators, in the order of their schemas."""

    stride: Sequence[int]
    pad_left: Sequence[int]
    pad_right: Sequence[int]
    dilation: Sequence[int]
    groups: int

    @staticmethod
    def of(dims: int, points: Sequence[int], stride: Any, padding: Any, dilation: Any, groups: int) -> Window:
        """From arguments as torch's functions take them; ``points`` are those of the filter in each dimension.

        ArrayError for another number of dimensions, a stride below 1, an unknown padding, and ``"same"`` with strides.
        """
        stride, dilation = _listed("stride", stride, dims), _listed("dilation", dilation, dims)
        if min(stride) < 1:
            raise ArrayError(f"stride is {stride}; allowed: 1 or more")
        if not isinstance(padding, str):
            left = right = _listed("padding", padding, dims)
        elif padding == "valid":
            left = right = (0,) * dims
        elif padding == "same" and set(stride) == {1}:
            reach = [step * (count - 1) for step, count in zip(dilation, points, strict=True)]
            left, right = tuple(each // 2 for each in reach), tuple(each - each // 2 for each in reach)
        else:
            raise ArrayError(
                f"padding is {padding!r} and stride {stride}; allowed: numbers, 'valid', and 'same' with a stride of 1"
            )
        return Window(stride, left, right, dilation, groups)

    def outputs(self, size: Sequence[Any], points: Sequence[Any]) -> list[Any]:
        """Output points in each dimension; extents may be symbols."""
        fields = zip(size, points, self.stride, self.pad_left, self.pad_right, self.dilation, strict=True)
        return [
            (extent + left + right - dilation * (count - 1) - 1) // stride + 1
            for extent, count, stride, left, right, dilation in fields
        ]


def _listed(field: str, value: Any, dims: int) -> tuple[int, ...]:
    listed = (value,) * dims if hasattr(value, "__index__") else tuple(value)
    if len(listed) == 1:
        listed *= dims
    if len(listed) != dims:
        raise ArrayError(f"{field} is {value!r}; allowed: one number, or {dims}")
    return listed


def channels_last(tensor: torch.Tensor, dense: bool = True) -> torch.Tensor:
    """The tensor with channels side by side: itself if they are, else a copy. A ``dense`` one has no gaps."""
    if not dense and (tensor.shape[1] == 1 or tensor.stride(1) == 1):
        return tensor
    return tensor.contiguous(memory_format=_FORMATS[tensor.dim()])


def empty(like: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    """A result, with channels side by side."""
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=_FORMATS[len(shape)])


def forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, out: torch.Tensor,
    window: Window, activation: str, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    """Write ``out``. All tensors are in the order of torch's shapes, their channels side by side."""
    found = dispatchers.find(dispatcher, x.device)
    bias = None if bias is None else plain(bias)
    found.conv_forward(
        _innermost(x), _innermost(w), _innermost(out), bias=bias, residual=_innermost(residual),
        activation=activation, **_options(window),
    )  # fmt: skip
    return out


def backward_data(
    dy: torch.Tensor, w: torch.Tensor, out: torch.Tensor, window: Window, dispatcher: str
) -> torch.Tensor:  # fmt: skip
    """Write dx to ``out``."""
    found = dispatchers.find(dispatcher, dy.device)
    found.conv_backward_data(_innermost(dy), _innermost(w), tuple(out.shape[2:]), _innermost(out), **_options(window))
    return out


def backward_weight(
    x: torch.Tensor, dy: torch.Tensor, out: torch.Tensor, window: Window, dispatcher: str
) -> torch.Tensor:  # fmt: skip
    """Write dw to ``out``."""
    found = dispatchers.find(dispatcher, x.device)
    found.conv_backward_weight(_innermost(x), _innermost(dy), tuple(out.shape[2:]), _innermost(out), **_options(window))
    return out


def _innermost(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """The same memory in the order of a problem's shapes."""
    return None if tensor is None else plain(tensor).permute(_ORDERS[tensor.dim()])


def _options(window: Window) -> dict[str, Any]:
    stride, left, right, dilation, groups = window
    padding = tuple(zip(left, right, strict=True))
    return {"stride": tuple(stride), "padding": padding, "dilation": tuple(dilation), "groups": groups}
