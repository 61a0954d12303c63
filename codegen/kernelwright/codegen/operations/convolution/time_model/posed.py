"""A convolution as programs pose it, with D, H and W as the C ABI has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, ConvLayout, Direction
from kernelwright.codegen.violations import SpecError

Along = tuple[int, int, int]
"""Along D, H and W."""
_FRONT = {"size": 1, "filter": 1, "stride": 1, "dilation": 1, "pad_left": 0, "pad_right": 0}  # of missing dimensions
_INNERMOST = (ConvLayout.NWGC, ConvLayout.NHWGC, ConvLayout.NDHWGC)


@dataclass(frozen=True)
class Posed:
    """The fields of ``kernelwright.dispatch.ConvProblem``, completed: extents along D, H and W; strides in memory.

    ``stride_x`` and ``stride_y`` lead to the next image, channel, and point along D, H and W, 0 in front where a
    problem has fewer dimensions.
    """

    direction: Direction
    n: int
    c: int
    k: int
    size: Along
    filter: Along
    groups: int
    stride: Along
    dilation: Along
    pad_left: Along
    pad_right: Along
    dtype: DType
    layout: ConvLayout
    bias: bool
    residual: bool
    activation: Activation
    split_k: int
    alpha: float
    beta: float
    stride_x: tuple[int, ...]
    stride_y: tuple[int, ...]

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of x, w and y."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def out(self) -> Along:
        """Output points along D, H and W."""
        d, h, w = (
            (size + left + right - dilation * (points - 1) - 1) // stride + 1
            for size, points, stride, dilation, left, right in zip(
                self.size, self.filter, self.stride, self.dilation, self.pad_left, self.pad_right, strict=True
            )
        )
        return d, h, w

    @property
    def filter_points(self) -> int:
        """Of all dimensions."""
        return math.prod(self.filter)

    @property
    def out_points(self) -> int:
        """Of one image."""
        return math.prod(self.out)

    @property
    def gemm(self) -> tuple[int, int, int]:
        """m, n and k of the implicit GEMM of a group; backward data without the points that a stride leaves out."""
        c, k, points, outputs = (
            self.c // self.groups,
            self.k // self.groups,
            self.filter_points,
            self.n * self.out_points,
        )
        if self.direction is Direction.FORWARD:
            return outputs, k, c * points
        return (outputs, c, k * points) if self.direction is Direction.BACKWARD_DATA else (k, c * points, outputs)


_NEEDED = ("direction", "n", "c", "k", "size", "filter")
_DEFAULTS: Mapping[str, Any] = {
    **{"groups": 1, "stride": 1, "dilation": 1, "pad_left": 0, "pad_right": None, "dtype": "fp32", "layout": ""},
    **{"bias": False, "residual": False, "activation": "none", "split_k": None, "alpha": 1.0, "beta": 0.0},
    **{"stride_x": None, "stride_y": None},
}


def read_posed(problem: Mapping[str, Any]) -> Posed:
    """The problem of a trace's entry. SpecError for unknown fields and values of the wrong kind."""
    known = tuple(field.name for field in fields(Posed))
    if unknown := sorted(set(problem) - set(known)):
        raise SpecError(f"a convolution has unknown fields {', '.join(unknown)}; allowed: {', '.join(known)}")
    if missing := [name for name in _NEEDED if name not in problem]:
        raise SpecError(f"a convolution lacks {', '.join(missing)}: {dict(problem)!r}")
    try:
        posed = _made({**_DEFAULTS, **problem})
        counted = (posed.n, *posed.pad_left, *posed.pad_right, posed.split_k, *posed.stride_x, *posed.stride_y)
        extents = (posed.c, posed.k, posed.groups, *posed.size, *posed.filter, *posed.stride, *posed.dilation)
        if not all(type(value) is int and value >= 0 for value in (*counted, *extents)) or not all(extents):
            raise ValueError("extents are whole numbers, at least 1, and images and padding at least 0")
        if posed.c % posed.groups or posed.k % posed.groups or min(posed.out) < 1:
            raise ValueError("groups divide c and k, and the filter leaves an output")
    except (TypeError, ValueError) as error:
        raise SpecError(f"{dict(problem)!r} is no convolution: {error}") from None
    return posed


def _made(given: dict[str, Any]) -> Posed:
    dims = len(given["size"]) if isinstance(given["size"], Sequence) else 1
    if given["pad_right"] is None:
        given["pad_right"] = given["pad_left"]
    for name, front in _FRONT.items():
        value = given[name]
        listed = tuple(value) if isinstance(value, Sequence) else (value,) * dims
        if len(listed) != dims or not 1 <= dims <= 3:
            raise ValueError(f"{name} is {value!r} and size has {dims} extents, of at most 3")
        given[name] = (front,) * (3 - dims) + listed
    given["layout"] = ConvLayout(given["layout"] or _INNERMOST[dims - 1])
    if SPATIAL_DIMS[given["layout"]] != dims:
        raise ValueError(f"layout is {given['layout']} and size has {dims} extents")
    direction = Direction(given["direction"])
    words = {"direction": direction, "dtype": DType(given["dtype"]), "activation": Activation(given["activation"])}
    if given["split_k"] is None:
        given["split_k"] = 0 if direction is Direction.BACKWARD_WEIGHT else 1
    x, y = given["stride_x"], given["stride_y"]
    posed = Posed(**{**given, **words, "stride_x": (), "stride_y": ()})
    return replace(
        posed,
        stride_x=_dense(posed, posed.c, posed.size) if x is None else _widened(x, dims),
        stride_y=_dense(posed, posed.k, posed.out) if y is None else _widened(y, dims),
    )


def _dense(posed: Posed, channels: int, size: Along) -> tuple[int, ...]:
    """As the bindings make them: of images, channels, then D, H and W; 0 for dimensions that there are not."""
    missing = 3 - SPATIAL_DIMS[posed.layout]
    extents = (posed.n, channels, *size[missing:])
    outer = range(2, len(extents))
    found, step = [0] * len(extents), 1
    for dim in reversed((0, 1, *outer) if posed.layout is ConvLayout.NGCHW else (0, *outer, 1)):
        found[dim] = step
        step *= max(extents[dim], 1)
    return _widened(found, len(extents) - 2)


def _widened(strides: Sequence[int], dims: int) -> tuple[int, ...]:
    if len(strides) != dims + 2:
        raise ValueError(f"strides {list(strides)} are not those of {dims} dimensions")
    return (*strides[:2], *(0,) * (3 - dims), *strides[2:])
