"""Which problems a CK Tile kernel serves: what its vectors, its 32-bit offsets and its grid take."""

from __future__ import annotations

from kernelwright.codegen.formulas.refusals import Invalid, Refusal
from kernelwright.codegen.formulas.widths import (
    bytes_fit_int32,
    element_bytes,
    fits_int32,
    fits_uint32,
    parts,
)
from kernelwright.codegen.operations.convolution.rules.checks import as_gemm, dims, filter_points, out, traits_match
from kernelwright.codegen.operations.convolution.rules.hip_sizes import SUM_BLOCK
from kernelwright.codegen.operations.convolution.rules.structs import Problem, Traits
from kernelwright.problems.convolution.description import ConvOp

HEADER = "launchers/hip/convolution/conditions.h"
PREFIX = "kw_hip_conv"

# K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around).
MAX_PREFETCH = 8
# Buffer loads of 4 bytes and more are aligned to these.
WORD = 4


def alignment(t: Traits) -> int:
    """Bytes that addresses and strides in memory must be multiples of."""
    size = element_bytes(t.dtype_x)
    return WORD if max(t.vector_a, t.vector_b, t.vector_c) * size >= WORD else size


def all_weights(p: Problem) -> int:
    """Elements of the weights of all groups."""
    return p.k * filter_points(p) * (p.c // p.groups)


def workgroups(t: Traits, p: Problem) -> int:
    """Workgroups of a launch: tiles of all phases, slices and groups."""
    g = as_gemm(p)
    rows = g.m
    phases = 1
    if p.op == ConvOp.BACKWARD_DATA:
        rows = p.n
        for i in range(3):
            phases = phases * p.stride[i]
            rows = rows * parts(p.extent[i], p.stride[i])
    return parts(rows, t.tile_m) * parts(g.n, t.tile_n) * phases * (p.split_k * p.groups)


def divides(channels: str, count: int, vector: int, operand: str) -> Refusal:
    """Channels per group are whole vectors."""
    if count % vector == 0:
        return None
    return f"{channels} per group = {count} is not a multiple of {vector}, the vector in which {operand} is accessed"


def vectors_fit(t: Traits, p: Problem) -> Refusal:
    """Operands are accessed in whole vectors."""
    c = p.c // p.groups
    k = p.k // p.groups
    if p.op == ConvOp.FORWARD:
        return divides("c", c, t.vector_a, "x") or divides("c", c, t.vector_b, "w") or divides("k", k, t.vector_c, "y")
    data = p.op == ConvOp.BACKWARD_DATA
    return (
        divides("k", k, t.vector_a, "dy")
        or divides("c", c, t.vector_b, "w" if data else "x")
        or divides("c", c, t.vector_c, "dx" if data else "dw")
    )


def span(strides: tuple[int, ...], images: int, points: tuple[int, ...], around: tuple[int, ...], channels: int) -> int:
    """Elements from the first image to the end of ``images``, with points on all sides that lie beyond an image."""
    reached = images * strides[0] + channels
    for i in range(3):
        reached = reached + (max(points[i] - 1, 0) + around[i]) * strides[2 + i]
    return reached


def more_taps(t: Traits, p: Problem, dim: int, channels: int, beyond: int) -> int:
    """Filter points along ``dim`` that lie beyond the last one, where tiles end ``beyond`` the filter's channels.

    They are counted on along the outermost dimension. A phase of backward data has one in ``stride`` filter points.
    """
    if dim != 3 - dims(t.layout):
        return 0
    row = max(channels, 1)
    for i in range(3):
        if i > dim:
            row = row * max(p.filter[i] // p.stride[i], 1)
    return beyond // row + 1


def images_fit(
    name: str,
    strides: tuple[int, ...],
    points: tuple[int, ...],
    around: tuple[int, ...],
    channels: int,
    beyond: int,
    t: Traits,
    p: Problem,
) -> Refusal:
    """Offsets of an image tensor, also of points that lie beyond it and are masked, fit into 31 bits of bytes.

    Loads add 2^31 to the offsets of points that are masked, so that those are out of range: neither may the size of the
    tensor and what lies before its begin exceed 2^31 bytes, nor what lies behind its end.
    """
    size = element_bytes(t.dtype_x)
    images = p.n + beyond // max(points[0] * points[1] * points[2], 1)
    aligned = alignment(t)
    for i in range(5):
        if i != 1 and strides[i] * size % aligned != 0:
            return f"a stride of {name} is {strides[i]} elements: points are not aligned to {aligned} bytes"
    if strides[1] != 1:
        return f"the channels of {name} do not lie side by side"
    one_more = (images + 1) * strides[0]
    if bytes_fit_int32(max(one_more, span(strides, images, points, around, channels + beyond)), size):
        return None
    return f"{name} spans {p.n} images of {strides[0]} elements: its byte offsets do not fit into 31 bits"


def weights_fit(t: Traits, p: Problem, sums: bool, beyond: int) -> Refusal:
    """Offsets of the weights of a group, or of slices of their gradients, which are fp32."""
    size = 4 if p.op == ConvOp.WEIGHT_SLICES and sums else element_bytes(t.dtype_x)
    row = filter_points(p) * (p.c // p.groups)
    rows = p.k // p.groups
    reached = (rows + beyond) * (row + beyond)
    if p.op == ConvOp.BACKWARD_DATA:  # a phase steps over filter points
        for i in range(3):
            reached = reached + more_taps(t, p, i, rows, beyond) * p.stride[i] * row
    if bytes_fit_int32(reached, size):
        return None
    return (
        f"the weights of a group are {rows} rows of {row} elements of {size} bytes: byte offsets do not fit"
        " into 31 bits"
    )


def spans_fit(t: Traits, p: Problem, sums: bool) -> Refusal:
    """Byte offsets within operands fit into 31 bits."""
    beyond = t.tile_m + t.tile_n + MAX_PREFETCH * t.tile_k
    data = p.op == ConvOp.BACKWARD_DATA
    outputs = (out(p, 0), out(p, 1), out(p, 2))
    c = p.c // p.groups
    k = p.k // p.groups
    around_x = (
        p.pad_left[0] + p.pad_right[0] + more_taps(t, p, 0, c, beyond) * p.dilation[0],
        p.pad_left[1] + p.pad_right[1] + more_taps(t, p, 1, c, beyond) * p.dilation[1],
        p.pad_left[2] + p.pad_right[2] + more_taps(t, p, 2, c, beyond) * p.dilation[2],
    )
    # Backward data counts output points from those that meet the first input point.
    around_y = (
        (p.filter[0] + more_taps(t, p, 0, k, beyond)) * p.dilation[0] if data else 0,
        (p.filter[1] + more_taps(t, p, 1, k, beyond)) * p.dilation[1] if data else 0,
        (p.filter[2] + more_taps(t, p, 2, k, beyond)) * p.dilation[2] if data else 0,
    )
    return (
        images_fit("x", p.stride_x, p.extent, around_x, c, beyond, t, p)
        or images_fit("y", p.stride_y, outputs, around_y, k, beyond, t, p)
        or weights_fit(t, p, sums, beyond)
    )


def even(strides: tuple[int, ...], points: tuple[int, ...]) -> bool:
    """Whether the points of all images lie equally far apart in memory."""
    step = strides[4]
    for i in range(3):
        if points[2 - i] != 1 and strides[4 - i] != step:
            return False
        step = step * points[2 - i]
    return strides[0] == step


def spacing(p: Problem) -> Refusal:
    """The points of x and y lie equally far apart."""
    outputs = (out(p, 0), out(p, 1), out(p, 2))
    if even(p.stride_x, p.extent) and even(p.stride_y, outputs):
        return None
    return "the points of x or y are not everywhere equally far apart in memory"


def too_wide(what: str) -> Refusal:
    """A number that kernels have 31 bits for."""
    return f"{what} does not fit into 31 bits"


def product_fits(a: int, b: int, c: int) -> bool:
    """Whether three counts and their product fit into 31 bits."""
    return fits_int32(a) and fits_int32(b) and fits_int32(c) and fits_int32(a * b * c)


def steps_fit(p: Problem) -> Refusal:
    """What the device multiplies in 32 bits to find points and filter points."""
    row = filter_points(p) * (p.c // p.groups)
    for i in range(3):
        reach = p.stride[i] + p.pad_left[i] + p.stride[i] * p.dilation[i] + p.filter[i] * p.dilation[i]
        if not fits_int32(reach):
            return "what a filter reaches does not fit into 31 bits"
        if not fits_int32(p.stride[i] * max(p.stride_x[2 + i], p.stride_y[2 + i])):
            return "the distance in memory of points that a stride leads to does not fit into 31 bits"
        if not fits_int32(p.stride[i] * row):
            return "the distance in memory of the filter points of a stride does not fit into 31 bits"
    return None


def range_fits(p: Problem) -> Refusal:
    """Counts of points beyond 31 bits are refused first, so that nothing later can overflow 64 bits."""
    memory = True
    for i in range(5):
        memory = memory and fits_int32(p.stride_x[i]) and fits_int32(p.stride_y[i])
    if not memory:
        return too_wide("a stride in memory")
    if not (fits_int32(p.groups) and fits_int32(p.c) and fits_int32(p.k)):
        return too_wide("the number of groups or channels")
    strides = product_fits(p.stride[0], p.stride[1], p.stride[2])
    if not strides or not product_fits(p.dilation[0], p.dilation[1], p.dilation[2]):
        return too_wide("strides or dilations")
    if not product_fits(p.filter[0], p.filter[1], p.filter[2]):
        return too_wide("the number of filter points")
    points = p.n
    fit = fits_int32(p.n)
    padding = True
    for i in range(3):
        padded = p.extent[i] + p.pad_left[i] + p.pad_right[i]
        padding = padding and fits_int32(p.extent[i]) and fits_int32(p.pad_left[i]) and fits_int32(p.pad_right[i])
        points = points * padded
        fit = fit and fits_int32(padded)
    if not padding:
        return too_wide("an extent or its padding")
    if not fit or not fits_int32(points):
        return too_wide("the number of points of all images")
    return steps_fit(p)


def counts_fit(t: Traits, p: Problem, sums: bool, block_size: int) -> Refusal:
    """Extents of the implicit GEMM, workgroups and sums are counted in 32 bits."""
    g = as_gemm(p)
    ahead = MAX_PREFETCH * t.tile_k
    if not fits_int32(g.m + t.tile_m) or not fits_int32(g.n + t.tile_n) or not fits_int32(g.k + ahead):
        return f"the implicit GEMM is {g.m} x {g.n} x {g.k}: it does not fit into 31 bits"
    if g.m != 0 and g.n != 0 and g.k == 0 and not sums:
        return "there is nothing to sum up; kernels that leave slices serve that"
    count = workgroups(t, p)
    if not fits_int32(count) or not fits_uint32(count * block_size):
        return f"{count} workgroups are more than a launch can have"
    added = all_weights(p) if sums else 0
    if not fits_uint32(added + SUM_BLOCK):
        return f"{added} weights are more than a launch can add up"
    return None


def divisors(p: Problem) -> Refusal:
    """What everything else divides by."""
    valid = p.groups >= 1 and p.c % p.groups == 0 and p.k % p.groups == 0
    for i in range(3):
        valid = valid and p.stride[i] >= 1 and p.dilation[i] >= 1 and p.filter[i] >= 1
    if valid:
        return None
    return Invalid("groups divide c and k; filter, stride and dilation are at least 1")


def check(t: Traits, p: Problem, evenly_spaced: bool, sums: bool, block_size: int) -> Refusal:
    """What is checked of a convolution but the struct itself.

    ``sums``: the kernel adds slices up; ``block_size``: work-items per workgroup.
    """
    return (
        traits_match(t, p)
        or (f"beta is {p.beta:g}, this kernel serves 0" if p.beta != 0.0 and not sums else None)
        or divisors(p)
        or range_fits(p)
        or vectors_fit(t, p)
        or spans_fit(t, p, sums)
        or (spacing(p) if evenly_spaced else None)
        or counts_fit(t, p, sums, block_size)
    )
