"""Convolution problems: what to compute, independent of the kernel that computes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kernelwright.problems import literals
from kernelwright.problems.base import BaseProblem
from kernelwright.problems.convolution import structs
from kernelwright.problems.convolution.description import DIMS, PROBLEM, SPATIAL, ConvLayout, ConvOp
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.scalars import integer, real
from kernelwright.problems.shared import ITEM_BYTES, Activation
from kernelwright.problems.structs import make, values

_MAX_ELEMENTS = 2**57  # so that byte offsets fit into 64 bits
_INNERMOST = tuple(ConvLayout.codes)[:3]  # layouts with channels innermost, by spatial dimensions
_ALONG = ("size", "filter", "stride", "dilation", "pad_left", "pad_right")
_DTYPES = ("fp32", "fp16", "bf16")
_COUNTS = ("n", "c", "k", "groups")
_SAME = (*_COUNTS, "layout", "bias", "residual", "activation", "split_k", "alpha", "beta")  # single values in C too

DIRECTIONS = {name.removeprefix("conv ").replace(" ", "_"): code for name, code in tuple(ConvOp.codes.items())[:3]}
"""Operations that callers ask for, by the direction of a problem."""
STAGES = dict.fromkeys(tuple(ConvOp.names)[3:], "backward_weight")
"""Stages, which callers do not ask for: the direction of the whole by operation."""

Extents = int | Sequence[int]
Strides = tuple[int, ...]


@dataclass(frozen=True, repr=False)
class ConvProblem(BaseProblem):
    """A grouped convolution of 1, 2 or 3 dimensions, or the gradient of its input or weights.

    ``forward`` computes y from x and w as ``activation(alpha * x*w + beta * y + bias + residual)``, ``backward_data``
    dx from dy and w, ``backward_weight`` dw from x and dy, both as ``alpha * gradient + beta * old``.

    :ivar direction: ``"forward"``, ``"backward_data"`` or ``"backward_weight"``.
    :ivar n: images; 0 computes nothing (and a dw of zeros).
    :ivar c: input channels of all groups; ``k`` output channels of all groups. Both are multiples of ``groups``.
    :ivar size: spatial extents of x, such as (H, W), one for each dimension.
    :ivar filter: filter points in each dimension.
    :ivar groups: each group has c / groups channels in and k / groups out.
    :ivar stride: distance in x between neighbouring outputs; one number stands for all dimensions. ``dilation``
        likewise is the distance between neighbouring filter points.
    :ivar pad_left: zeros before x in each dimension; ``pad_right`` those after it, by default as many.
    :ivar dtype: element type of x, w and y: ``fp32``, ``fp16`` or ``bf16``; sums are fp32.
    :ivar layout: storage order of x and y: ``nwgc``, ``nhwgc``, ``ndhwgc`` (channels innermost, the default) or
        ``ngchw``. Weights are dense: (k, \\*filter, c / groups), or (k, c / groups, \\*filter) in ``ngchw``.
    :ivar bias: whether one number per output channel is added; forward only. ``residual``: whether a tensor of y's
        shape and strides is added after it; ``activation``: as for :class:`GemmProblem`.
    :ivar split_k: backward weight: slices of the sum that are added up at the end; 0 lets the dispatcher choose.
    :ivar stride_x: elements between neighbours of x: images, channels, then each spatial dimension; by default those of
        a dense tensor. ``stride_y`` likewise of y and of the residual.
    :raises ProblemError: for an illegal number, dtype, layout or stride, or a filter that leaves no output.
    """

    direction: str
    n: int
    c: int
    k: int
    size: Extents
    filter: Extents
    groups: int = 1
    stride: Extents = 1
    dilation: Extents = 1
    pad_left: Extents = 0
    pad_right: Extents | None = None
    dtype: str = "fp32"
    layout: literals.ConvLayout | Literal[""] = ""
    bias: bool = False
    residual: bool = False
    activation: literals.Activation = "none"
    split_k: int | None = None
    alpha: float = 1.0
    beta: float = 0.0
    stride_x: Sequence[int] | None = None
    stride_y: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check everything."""
        self._choose("direction", DIRECTIONS)
        self._choose("dtype", _DTYPES)
        self._fill_extents()
        self._fill_counts()
        self._fill_epilogue()
        for dim, (out, size) in enumerate(zip(self.out_size, self.sizes, strict=True)):
            if out < 1:
                reach = self._at("dilation", dim) * (self._at("filter", dim) - 1) + 1
                raise ProblemError(
                    f"the filter reaches over {reach} points along dimension {dim}, more than size {size} and its"
                    f" padding; allowed: at most {reach + (out - 1) * self._at('stride', dim)}"
                )
        for field, channels, sizes, written in (
            ("stride_x", self.c, self.sizes, self.direction == "backward_data"),
            ("stride_y", self.k, self.out_size, self.direction == "forward"),
        ):
            self._set(field, self._memory(field, getattr(self, field), channels, sizes, written))
        if math.prod(self.w_shape) > _MAX_ELEMENTS:
            raise ProblemError(f"w has {math.prod(self.w_shape)} elements; allowed: at most {_MAX_ELEMENTS}")
        self._keep_hash()

    __hash__ = BaseProblem.__hash__

    def _at(self, field: str, dim: int) -> int:
        value: tuple[int, ...] = getattr(self, field)
        return value[dim]

    def _fill_extents(self) -> None:
        dims = len(_listed("size", self.size, 1))
        if not 1 <= dims <= 3:
            raise ProblemError(f"size is {self.size!r}; allowed: one to three extents")
        if self.pad_right is None:
            self._set("pad_right", self.pad_left)
        for field in _ALONG:
            value = getattr(self, field)
            listed = _listed(field, value, dims)
            if len(listed) != dims:
                raise ProblemError(f"{field} is {value!r}; allowed: {dims} numbers, one for each dimension of size")
            least = _least(field)
            self._set(field, tuple(integer(field, each, least) for each in listed))
        self._set("layout", self.layout or _INNERMOST[dims - 1])
        self._choose("layout", ConvLayout.codes)
        if dims != DIMS[self.layout]:
            raise ProblemError(
                f"layout is {self.layout!r} and size has {dims} extents; allowed: {_INNERMOST[dims - 1]}"
            )

    def _fill_counts(self) -> None:
        for field in _COUNTS:
            self._set(field, integer(field, getattr(self, field), _least(field)))
        for field in ("c", "k"):
            if getattr(self, field) % self.groups:
                raise ProblemError(f"{field} is {getattr(self, field)}; allowed: multiples of groups = {self.groups}")
        weight = self.direction == "backward_weight"
        split_k = (0 if weight else 1) if self.split_k is None else integer("split_k", self.split_k, 0, 2**32 - 1)
        if not weight and split_k != 1:
            raise ProblemError(f"split_k is {split_k}; allowed for {self.direction}: 1")
        self._set("split_k", split_k)

    def _fill_epilogue(self) -> None:
        self._choose("activation", Activation.codes)
        for field in ("bias", "residual"):
            self._set(field, bool(getattr(self, field)))
        if self.direction != "forward" and (self.bias or self.residual or self.activation != "none"):
            raise ProblemError(f"bias, residual or activation is given; allowed for {self.direction}: none of them")
        for field in ("alpha", "beta"):
            self._set(field, real(field, getattr(self, field)))

    def _memory(self, field: str, given: Sequence[int] | None, channels: int, sizes: Strides, written: bool) -> Strides:
        """The strides of a tensor: images, channels, spatial dimensions. Strides along extents of 1 mean nothing."""
        extents = (self.n, channels, *sizes)
        order = (0, 1, *range(2, len(extents))) if self.layout == "ngchw" else (0, *range(2, len(extents)), 1)
        dense, size = [0] * len(extents), 1
        for dim in reversed(order):
            dense[dim] = size
            size *= max(extents[dim], 1)
        if given is None or not self.n:  # strides of empty arrays mean nothing
            strides = tuple(dense)
        else:
            if len(given) != len(extents):
                raise ProblemError(f"{field} is {tuple(given)}; allowed: {len(extents)} strides")
            read = [integer(field, each, 0) for each in given]
            strides = tuple(d if e < 2 else g for g, d, e in zip(read, dense, extents, strict=True))
        unit = order[-1]
        if strides[unit] != 1:
            what = "channels" if unit == 1 else "points of a line"
            raise ProblemError(f"{field} is {strides}; allowed in layout {self.layout}: {what} side by side, stride 1")
        if sum(max(e - 1, 0) * s for e, s in zip(extents, strides, strict=True)) >= _MAX_ELEMENTS:
            raise ProblemError(f"{field} is {strides}; allowed: tensors that span at most {_MAX_ELEMENTS} elements")
        if written:
            _check_overlap(field, strides, extents)
        return strides

    @property
    def sizes(self) -> Strides:
        """Spatial extents of x, always as a tuple."""
        return self.size  # type: ignore[return-value]

    @property
    def out_size(self) -> Strides:
        """Spatial extents of y."""
        return tuple(
            (size + left + right - dilation * (filter - 1) - 1) // stride + 1
            for size, filter, stride, dilation, left, right in zip(
                *(getattr(self, field) for field in _ALONG), strict=True
            )
        )

    @property
    def x_shape(self) -> Strides:
        """Shape of x in the order of the layout, channels of all groups together."""
        return self._shape(self.c, self.sizes)

    @property
    def y_shape(self) -> Strides:
        """Shape of y in the order of the layout."""
        return self._shape(self.k, self.out_size)

    @property
    def w_shape(self) -> Strides:
        """Shape of w: (k, \\*filter, c / groups), in ``ngchw`` (k, c / groups, \\*filter)."""
        points: tuple[int, ...] = self.filter  # type: ignore[assignment]
        per_group = self.c // self.groups
        return (self.k, per_group, *points) if self.layout == "ngchw" else (self.k, *points, per_group)

    def _shape(self, channels: int, sizes: Strides) -> Strides:
        return (self.n, channels, *sizes) if self.layout == "ngchw" else (self.n, *sizes, channels)

    @property
    def flops(self) -> int:
        """Multiplications and additions of every filter point with every output, padding included."""
        points = math.prod(self.filter) * math.prod(self.out_size)  # type: ignore[arg-type]
        return 2 * self.n * self.k * (self.c // self.groups) * points

    @property
    def bytes_moved(self) -> int:
        """Bytes of x, w, y and the residual."""
        y = math.prod(self.y_shape)
        return (math.prod(self.x_shape) + math.prod(self.w_shape) + y * (2 if self.residual else 1)) * self.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.dtype]

    def span(self, operand: str) -> int:
        """Return the bytes from the first element of ``x``, ``w`` or ``y`` to behind the last one, gaps included."""
        if operand == "w":
            return math.prod(self.w_shape) * self.itemsize
        channels, sizes, strides = (
            (self.c, self.sizes, self.stride_x) if operand == "x" else (self.k, self.out_size, self.stride_y)
        )
        assert strides is not None
        last = sum((e - 1) * s for e, s in zip((self.n, channels, *sizes), strides, strict=True))
        return (last + 1) * self.itemsize if self.n else 0

    @property
    def gemm(self) -> tuple[int, int, int]:
        """m, n and k of a group's implicit GEMM; backward data excludes the points that a stride leaves out."""
        c, k, points = self.c // self.groups, self.k // self.groups, math.prod(self.filter)  # type: ignore[arg-type]
        outputs = self.n * math.prod(self.out_size)
        if self.direction == "forward":
            return outputs, k, c * points
        return (outputs, c, k * points) if self.direction == "backward_data" else (k, c * points, outputs)

    def in_c(self) -> dict[str, Any]:
        """Return the members of the C struct: words and numbers, with D, H and W also for dimensions that it lacks."""
        missing = SPATIAL.value - len(self.sizes)
        types = {name: self.dtype for name in ("dtype_x", "dtype_w", "dtype_y")} | {"dtype_acc": "fp32"}
        same = {name: getattr(self, name) for name in _SAME}
        along = {_C_NAMES.get(name, name): (_least(name),) * missing + getattr(self, name) for name in _ALONG}
        memory = {name: tuple(getattr(self, name)) for name in ("stride_x", "stride_y")}
        wide = {name: (*one[:2], *(0,) * missing, *one[2:]) for name, one in memory.items()}
        return {**types, **same, **along, **wide}

    def native(self) -> structs.ConvProblem:
        """The C struct of this problem."""
        return make(structs.ConvProblem, PROBLEM, DIRECTIONS[self.direction], self.in_c())

    @classmethod
    def from_native(cls, address: int) -> ConvProblem:
        """Read the problem from the C struct at an address; a stage of backward weight is read as the whole problem."""
        struct = structs.ConvProblem.from_address(address)
        read = values(struct, PROBLEM)
        missing = SPATIAL.value - DIMS[read["layout"]]
        given = {name: read[name] for name in _SAME} | {"bias": bool(struct.bias), "residual": bool(struct.residual)}
        given |= {name: read[_C_NAMES.get(name, name)][missing:] for name in _ALONG}
        given |= {name: (*read[name][:2], *read[name][2 + missing :]) for name in ("stride_x", "stride_y")}
        directions = {**{code: name for name, code in DIRECTIONS.items()}, **STAGES}
        return cls(directions[struct.op], dtype=read["dtype_x"], **given)

    def __str__(self) -> str:
        """E.g. ``conv forward fp32 nhwgc n8 c64 k64 56x56 filter 3x3 padding 1x1``."""

        def shown(field: str, usual: int | None, name: str) -> str:
            values = getattr(self, field)
            return "" if usual is not None and set(values) == {usual} else f" {name}{'x'.join(map(str, values))}"

        text = f"conv {self.direction.replace('_', ' ')} {self.dtype} {self.layout} n{self.n} c{self.c} k{self.k}"
        text += shown("size", None, "") + shown("filter", None, "filter ")
        text += f" groups {self.groups}" if self.groups != 1 else ""
        text += shown("stride", 1, "stride ") + shown("dilation", 1, "dilation ")
        text += shown("pad_left", 0, "padding ")
        text += shown("pad_right", None, "right ") if self.pad_left != self.pad_right else ""
        text += " bias" if self.bias else ""
        text += " residual" if self.residual else ""
        return text + (f" {self.activation}" if self.activation != "none" else "")


_C_NAMES = {"size": "extent"}


def _least(field: str) -> int:
    """Return the smallest legal number of a field, which also stands for dimensions that a problem lacks."""
    least = PROBLEM.members[_C_NAMES.get(field, field)].field.least
    assert least is not None
    return least


def _listed(field: str, value: Any, dims: int) -> tuple[int, ...]:
    """Return one number for each dimension; a single number stands for all ``dims``."""
    if hasattr(value, "__index__"):
        return (value,) * dims
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise ProblemError(f"{field} is {value!r}; allowed: an integer, or one for each dimension")
    return tuple(value)


def _check_overlap(field: str, strides: Strides, extents: Strides) -> None:
    """Check that, sorted by stride, each dimension of a written tensor steps over the span of the inner ones."""
    span = 1
    for stride, extent in sorted((s, e) for s, e in zip(strides, extents, strict=True) if e > 1):
        if stride < span:
            raise ProblemError(f"{field} is {strides}, so results would overlap; allowed: {span} or more for {stride}")
        span += (extent - 1) * stride
