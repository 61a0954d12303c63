"""Tensors of a convolution: arrays in the order of a layout, checked against a plan's problem."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.arrays.view import ArrayView, view
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.problems.convolution.problem import ConvProblem

NAMES = {
    "forward": ("x", "w", "bias", "residual", "y"),
    "backward_data": ("dy", "w", "bias", "residual", "dx"),
    "backward_weight": ("x", "dy", "bias", "residual", "dw"),
}
"""Names of a plan's operands in errors, in launch order."""

_KINDS = {"x": "x", "dx": "x", "y": "y", "dy": "y", "residual": "y", "w": "w", "dw": "w"}


def tensor(array: Any, name: str, dims: int, stream: int | None) -> ArrayView:
    """View an array of ``dims`` dimensions. Raises ArrayError for another rank, and for negative strides."""
    operand = view(array, name, stream)
    if len(operand.shape) != dims:
        raise ArrayError(f"{name} has shape {operand.shape}; allowed: {dims} dimensions")
    if any(s < 0 for s, e in zip(operand.strides, operand.shape, strict=True) if e > 1):
        raise ArrayError(f"{name} has strides {operand.strides}; negative ones cannot be addressed, pass a copy")
    return operand


def memory_strides(operand: ArrayView, channels_first: bool) -> tuple[int, ...]:
    """Strides of x or y in the order of a problem: images, channels, spatial dimensions."""
    n, *rest = operand.strides
    return (n, *rest) if channels_first else (n, rest[-1], *rest[:-1])


def check_dense(operand: ArrayView, name: str) -> None:
    """Raise ArrayError unless weights are dense in the order of their shape."""
    size = 1
    for stride, extent in zip(reversed(operand.strides), reversed(operand.shape), strict=True):
        if extent > 1 and stride != size:
            raise ArrayError(f"{name} has strides {operand.strides}; weights must be dense, pass a contiguous copy")
        size *= max(extent, 1)


def check_operand(operand: ArrayView, name: str, problem: ConvProblem, memory: str) -> None:
    """Raise ArrayError unless a plan for ``problem`` takes ``operand`` as its operand ``name``."""
    kind = _KINDS.get(name, name)
    wanted: tuple[int, ...] = (
        (problem.k,) if name == "bias" else {"x": problem.x_shape, "y": problem.y_shape, "w": problem.w_shape}[kind]
    )
    if operand.shape != wanted or operand.dtype != problem.dtype:
        raise ArrayError(f"{name} is {operand.shape} {operand.dtype}; allowed for this plan: {wanted} {problem.dtype}")
    if operand.device != memory:
        raise ArrayError(f"{name} is on {operand.device}; allowed for this plan: {memory}")
    if name == "bias" or kind == "w":
        check_dense(operand, name)
    else:
        strides = problem.stride_x if kind == "x" else problem.stride_y
        given = memory_strides(operand, problem.layout == "ngchw")
        extents = (wanted[0], wanted[1], *wanted[2:]) if problem.layout == "ngchw" else (
            wanted[0], wanted[-1], *wanted[1:-1]
        )  # fmt: skip
        assert strides is not None
        if 0 not in wanted and any(g != s for g, s, e in zip(given, strides, extents, strict=True) if e > 1):
            raise ArrayError(
                f"{name} has strides {given} (images, channels, points); allowed for this plan: {tuple(strides)}"
            )
    if name == NAMES[problem.direction][-1] and operand.readonly:
        raise ArrayError(f"{name} cannot be written to; pass a writable array")


def check_aliasing(views: dict[str, ArrayView], output: str) -> None:
    """Raise ArrayError if the result shares memory with an input, unless it is the residual itself."""
    begin, end = _span(views[output])
    for name, operand in views.items():
        if name == output or (name == "residual" and operand.pointer == begin):
            continue
        other_begin, other_end = _span(operand)
        if other_begin < end and begin < other_end:
            raise ArrayError(f"{output} shares memory with {name}, which is read meanwhile; pass another out")


def _span(operand: ArrayView) -> tuple[int, int]:
    if 0 in operand.shape:
        return operand.pointer, operand.pointer
    last = sum((extent - 1) * stride for extent, stride in zip(operand.shape, operand.strides, strict=True))
    return operand.pointer, operand.pointer + (last + 1) * dtypes.ITEMSIZE[operand.dtype]
