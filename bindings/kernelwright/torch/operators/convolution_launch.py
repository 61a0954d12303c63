"""Launch convolutions with torch's tensors: memory formats, windows, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch import dispatchers, inputs
from kernelwright.torch.operator import plain

WINDOW_SCHEMA = "int[] stride, SymInt[] pad_left, SymInt[] pad_right, int[] dilation, int groups"
"""The fields of :class:`Window` in torch's argument syntax."""

# By number of dimensions; torch has no memory format for rank 3, which is treated as an image of one line:
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_ORDERS = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


class Window(NamedTuple):
    """The input points that an output point reads: arguments of all three operators, in the order of their schemas."""

    stride: Sequence[int]
    pad_left: Sequence[int]
    pad_right: Sequence[int]
    dilation: Sequence[int]
    groups: int

    @staticmethod
    def of(dims: int, points: Sequence[int], stride: Any, padding: Any, dilation: Any, groups: int) -> Window:
        """Build a window from the arguments of torch's functions; ``points`` are the filter's extents.

        Raises ArrayError for anything but integers, one or ``dims`` of them, for numbers out of range, an unknown
        padding, and ``"same"`` with strides.
        """
        stride, dilation = _listed("stride", stride, dims, 1), _listed("dilation", dilation, dims, 1)
        groups = _integer("groups", groups, groups, "one integer", 1)
        if not isinstance(padding, str):
            left = right = _listed("padding", padding, dims, 0)
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


def _listed(field: str, value: Any, dims: int, least: int) -> tuple[Any, ...]:
    """One number per dimension from torch's argument: an integer other than a bool, or a list of one or of all."""
    allowed = f"one integer, or {dims}"
    listed = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(listed) == 1:
        listed *= dims
    if len(listed) != dims:
        raise ArrayError(f"{field} is {value!r}; allowed: {allowed}")
    return tuple(_integer(field, each, value, allowed, least) for each in listed)


def _integer(field: str, each: Any, value: Any, allowed: str, least: int) -> Any:
    if not hasattr(each, "__index__") or isinstance(each, bool | torch.SymBool) or type(each).__name__ == "bool_":
        raise ArrayError(f"{field} is {value!r}; allowed: {allowed}; no floats, bools or text")
    number = each if isinstance(each, int | torch.SymInt) else each.__index__()
    if number < least:
        raise ArrayError(f"{field} is {value!r}; allowed: {least} or more")
    return number


def channels_last(tensor: torch.Tensor, name: str = "", dense: bool = True) -> torch.Tensor:
    """The tensor with contiguous channels: itself if they are contiguous, else a copy. A ``dense`` one has no gaps.

    :param name: the name of a user's operand, whose copy is reported.
    """
    overlaps = any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape, strict=True))
    if not dense and not overlaps and (tensor.shape[1] == 1 or tensor.stride(1) == 1):
        return tensor
    innermost = tensor.movedim(1, -1)  # torch.vmap does not support memory formats
    if innermost.is_contiguous():
        return tensor
    if name:
        inputs.tell_copy(name, tensor, "kernels read channels side by side, as torch.channels_last has them")
    return innermost.contiguous().movedim(-1, 1)


def empty(like: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    """Allocate a result with contiguous channels."""
    if len(shape) == 3:
        return empty(like, (*shape[:2], 1, shape[2])).squeeze(2)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=_FORMATS[len(shape)])


def forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, out: torch.Tensor,
    window: Window, activation: str, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    """Write ``out``. All tensors have torch's dimension order and contiguous channels."""
    in_use = dispatchers.find(dispatcher, x.device)
    bias = None if bias is None else plain(bias)
    if bias is not None and bias.stride(0) != 1 and bias.shape[0] > 1:
        bias = inputs.copied("bias", bias, "kernels read its values side by side")
    in_use.conv_forward(
        innermost(x), innermost(w), innermost(out), bias=bias, residual=innermost(residual),
        activation=activation, **options_of(window),  # type: ignore[arg-type]
    )  # fmt: skip
    return out


def backward_data(
    dy: torch.Tensor, w: torch.Tensor, out: torch.Tensor, window: Window, dispatcher: str
) -> torch.Tensor:  # fmt: skip
    """Write dx to ``out``."""
    in_use = dispatchers.find(dispatcher, dy.device)
    in_use.conv_backward_data(innermost(dy), innermost(w), tuple(out.shape[2:]), innermost(out), **options_of(window))
    return out


def backward_weight(
    x: torch.Tensor, dy: torch.Tensor, out: torch.Tensor, window: Window, dispatcher: str
) -> torch.Tensor:  # fmt: skip
    """Write dw to ``out``."""
    in_use = dispatchers.find(dispatcher, x.device)
    in_use.conv_backward_weight(innermost(x), innermost(dy), tuple(out.shape[2:]), innermost(out), **options_of(window))
    return out


def innermost(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """The same memory in the order of a problem's shapes."""
    return None if tensor is None else plain(tensor).permute(_ORDERS[tensor.dim()])


def options_of(window: Window) -> dict[str, Any]:
    """The window as keyword arguments of ``Dispatcher.conv_forward``."""
    stride, left, right, dilation, groups = window
    padding = tuple(zip(left, right, strict=True))
    return {"stride": tuple(stride), "padding": padding, "dilation": tuple(dilation), "groups": groups}
