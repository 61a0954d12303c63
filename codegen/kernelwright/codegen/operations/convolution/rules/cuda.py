"""Which problems a CUDA kernel serves, as far as memory and depthwise kernels go; shape.cpp derives shapes."""

from __future__ import annotations

from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.widths import INT16_MAX, INT32_MAX, fits_int32, parts
from kernelwright.codegen.operations.convolution.rules.checks import everywhere, out, out_points, traits_match
from kernelwright.codegen.operations.convolution.rules.cuda_sizes import STEP, STRIP
from kernelwright.codegen.operations.convolution.rules.structs import Problem, Traits
from kernelwright.problems.convolution.description import ConvOp

HEADER = "launchers/cuda/convolution/conditions.h"
PREFIX = "kw_cuda_conv"

# Channels of a lane, in one access of 4 bytes.
PAIR = 2
# Elements: TMA addresses lines by multiples of 16 bytes.
LINE = 8
# Lines of outputs of a workgroup of a depthwise kernel, one for each warp.
ROWS = 8


def aligned(strides: tuple[int, ...], images: int, extent: tuple[int, ...]) -> bool:
    """Whether memory strides of an image of these extents (along D, H, W) are multiples of 16 bytes."""
    for dim in range(3):
        if extent[dim] > 1 and strides[2 + dim] % LINE != 0:
            return False
    return images <= 1 or strides[0] % LINE == 0


def strides_fit(p: Problem) -> Refusal:
    """TMA's strides end below 2^40 bytes."""
    for i in range(5):
        if p.stride_x[i] >= 1 << 39 or p.stride_y[i] >= 1 << 39:
            return "a stride in memory is 2^39 elements or more; TMA needs less"
    return None


def reads(name: str, strides: tuple[int, ...], p: Problem, extent: tuple[int, ...]) -> Refusal:
    """Images that TMA reads."""
    if aligned(strides, p.n, extent):
        return None
    return f"points of {name} do not lie at multiples of 16 bytes, which TMA needs"


def stores(name: str, strides: tuple[int, ...], p: Problem) -> Refusal:
    """Images that are stored by two channels at a time."""
    if p.c % PAIR == 0 and strides[0] % PAIR == 0 and strides[3] % PAIR == 0 and strides[4] % PAIR == 0:
        return None
    return f"c or a stride of {name} is odd; this kernel stores two channels at a time"


def memory(p: Problem) -> Refusal:
    """Images of a depthwise kernel, first what is read."""
    outputs = (out(p, 0), out(p, 1), out(p, 2))
    if p.op == ConvOp.FORWARD:
        return reads("x", p.stride_x, p, p.extent) or stores("y", p.stride_y, p)
    if p.op == ConvOp.BACKWARD_DATA:
        return reads("dy", p.stride_y, p, outputs) or stores("dx", p.stride_x, p)
    return reads("x", p.stride_x, p, p.extent) or reads("dy", p.stride_y, p, outputs)


def workgroups(p: Problem) -> int:
    """Of depthwise forward and backward data, or a few more: see depthwise.cpp."""
    data = p.op == ConvOp.BACKWARD_DATA
    across = parts(p.extent[2] + 1 if data else out(p, 2), 2 * STRIP)
    down = parts(p.extent[1] + 1 if data else out(p, 1), ROWS)
    return p.n * parts(p.c, STEP) * (across * down)


def depthwise_fits(p: Problem) -> Refusal:
    """Problems of depthwise kernels."""
    points = p.filter[2]
    stride = p.stride[2]
    weight = p.op == ConvOp.WEIGHT_SLICES
    if p.extent[0] != 1 or p.filter[0] != 1 or p.pad_left[0] != 0 or p.pad_right[0] != 0:
        return "this kernel serves two dimensions"
    if p.filter[1] != points or points not in (3, 5, 7) or not everywhere(p.dilation, 1):
        return "this kernel serves filters of 3x3, 5x5 and 7x7 points without dilation"
    if p.stride[1] != stride or stride > 2:
        return "this kernel serves strides of 1 and 2 in both dimensions"
    for dim in range(1, 3):
        if p.extent[dim] > INT16_MAX or p.pad_left[dim] > INT16_MAX or p.pad_right[dim] > INT16_MAX:
            return f"an extent or its padding exceeds {INT16_MAX}"
    if p.c > INT32_MAX // 2 or p.n > INT32_MAX // 2:
        return f"c or n exceeds {INT32_MAX // 2}"
    if weight and (p.c > INT32_MAX // 49 or not fits_int32(p.n * out_points(p))):
        return f"weights, or outputs of all images, are more than {INT32_MAX}"
    if not weight and not fits_int32(workgroups(p)):
        return f"{p.n} images of {p.c} channels need more workgroups than a launch can have"
    return memory(p)


def check(t: Traits, p: Problem) -> Refusal:
    """What traits and memory say; of kernels that are not depthwise, the derived shape says more."""
    return traits_match(t, p) or strides_fit(p) or (depthwise_fits(p) if t.depthwise else None)
