"""Which problems a kernel may serve as far as its traits tell, and numbers that follow from a valid problem."""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.shared import dtype_matches
from kernelwright.codegen.operations.convolution.rules.structs import Problem, Traits
from kernelwright.problems.convolution.description import ConvLayout, ConvOp, Specialization

HEADER = "kernelwright/convolution/checks.h"
PREFIX = "kw_conv"


def dims(layout: ConvLayout) -> int:
    """Spatial dimensions of a layout."""
    return 1 if layout == ConvLayout.NWGC else 3 if layout == ConvLayout.NDHWGC else 2


def out(p: Problem, dim: int) -> int:
    """Output points along a spatial dimension."""
    padded = p.extent[dim] + p.pad_left[dim] + p.pad_right[dim]
    return (padded - p.dilation[dim] * (p.filter[dim] - 1) - 1) // p.stride[dim] + 1


def filter_points(p: Problem) -> int:
    """Of all dimensions."""
    return p.filter[0] * p.filter[1] * p.filter[2]


def out_points(p: Problem) -> int:
    """Of one image."""
    return out(p, 0) * out(p, 1) * out(p, 2)


class Gemm(NamedTuple):
    """The implicit GEMM of a group."""

    m: int
    n: int
    k: int


def as_gemm(p: Problem) -> Gemm:
    """The implicit GEMM of a group; backward data without the points that a stride leaves out."""
    c = p.c // p.groups
    k = p.k // p.groups
    outputs = p.n * out_points(p)
    if p.op == ConvOp.FORWARD:
        return Gemm(outputs, k, c * filter_points(p))
    if p.op == ConvOp.BACKWARD_DATA:
        return Gemm(outputs, c, k * filter_points(p))
    return Gemm(k, c * filter_points(p), outputs)


def everywhere(values: tuple[int, ...], wanted: int) -> bool:
    """Whether every entry of an array along D, H and W is this value."""
    return values[0] == wanted and values[1] == wanted and values[2] == wanted


def dtypes_match(t: Traits, p: Problem) -> Refusal:
    """The kernel is built for these types."""
    return (
        dtype_matches("dtype_x", p.dtype_x, t.dtype_x)
        or dtype_matches("dtype_w", p.dtype_w, t.dtype_w)
        or dtype_matches("dtype_y", p.dtype_y, t.dtype_y)
        or dtype_matches("dtype_acc", p.dtype_acc, t.dtype_acc)
    )


def layouts_match(t: Traits, p: Problem) -> Refusal:
    """Images with channels innermost and fewer dimensions are those of a kernel with more, with extents of 1."""
    innermost = t.layout != ConvLayout.NGCHW and p.layout != ConvLayout.NGCHW
    if t.layout == p.layout or (innermost and dims(p.layout) < dims(t.layout)):
        return None
    return f"layout is {p.layout}, this kernel serves {t.layout}"


def epilogue_matches(t: Traits, p: Problem) -> Refusal:
    """Bias, residual and activation are what the kernel is built for."""
    any_epilogue = t.activation == Activation.ANY
    if p.bias != t.bias and not (any_epilogue and t.bias):
        if p.bias:
            return "the problem has a bias, this kernel adds none"
        return "the problem has no bias, this kernel adds one"
    if p.residual != t.residual and not (any_epilogue and t.residual):
        if p.residual:
            return "the problem has a residual, this kernel adds none"
        return "the problem has no residual, this kernel adds one"
    if not any_epilogue and p.activation != t.activation:
        return f"activation is {p.activation}, this kernel does {t.activation}"
    return None


def plane_matches(t: Traits, p: Problem) -> Refusal:
    """A filter and stride along H and W that a depthwise kernel fixes are those of the problem."""
    for i in range(2):
        dim = 2 - i
        if t.stride[1 - i] != 0 and p.stride[dim] != t.stride[1 - i]:
            return "this kernel serves one stride"
        padding = t.padding[1 - i]
        padded = p.pad_left[dim] == padding and p.pad_right[dim] == padding
        same = p.filter[dim] == t.filter[1 - i] and padded and p.dilation[dim] == 1
        if t.filter[1 - i] != 0 and not same:
            return "this kernel serves one filter with one padding and no dilation"
    return None


def shape_matches(t: Traits, p: Problem) -> Refusal:
    """Filter, strides, padding and channels per group are what the kernel is built for."""
    depthwise = p.c == p.groups and p.k == p.groups
    three = depthwise
    for dim in range(3 - dims(p.layout), 3):
        three = three and p.filter[dim] == 3
    point = everywhere(p.filter, 1) and everywhere(p.pad_left, 0) and everywhere(p.pad_right, 0)
    matrices = t.specialization == Specialization.FILTER1X1_STRIDE1_PAD0
    return (
        plane_matches(t, p)
        or (
            "this kernel serves filters of 3 points and one channel per group"
            if t.specialization == Specialization.FILTER3X3 and not three
            else None
        )
        or ("this kernel serves strides of 1" if matrices and not everywhere(p.stride, 1) else None)
        or (
            "this kernel serves filters of one point without padding"
            if (matrices or t.specialization == Specialization.FILTER1X1_PAD0) and not point
            else None
        )
        or ("this kernel serves one channel in and out per group" if t.depthwise and not depthwise else None)
    )


def split_k_matches(t: Traits, p: Problem) -> Refusal:
    """The kernel sums in so many slices. A split_k of 0 is the dispatcher's to choose."""
    if p.split_k < 1 or p.split_k > t.max_split_k:
        return f"split_k is {p.split_k}, this kernel serves 1{' or more' if t.max_split_k > 1 else ''}"
    leaves = 1 if p.split_k > 1 and t.slices != 0 else 0
    if p.op == ConvOp.WEIGHT_SLICES and p.leaves_slices != leaves:
        return f"leaves_slices is {p.leaves_slices}, this kernel serves {leaves}"
    return None


def variant_matches(t: Traits, p: Problem) -> Refusal:
    """All of the above but types, layout and split_k: what holds before the dispatcher has chosen."""
    return epilogue_matches(t, p) or shape_matches(t, p)


def traits_match(t: Traits, p: Problem) -> Refusal:
    """All of the above: what a backend checks of a problem before its own conditions."""
    return dtypes_match(t, p) or layouts_match(t, p) or variant_matches(t, p) or split_k_matches(t, p)
