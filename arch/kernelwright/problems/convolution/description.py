"""Grouped convolution in the C ABI: problems, operands of a launch, traits of kernels."""

from typing import Annotated

from kernelwright.problems.fields import (
    RECORDS,
    U32,
    Constant,
    Field,
    Header,
    Struct,
    Wholes,
    Word,
    member,
    record,
)
from kernelwright.problems.shared import Activation, DType, StreamK


class ConvOp(Word, c_type="kw_conv_op", prefix="KW_OP_CONV_", first=16):
    """
    Values of kw_problem.op: 16 to 31 are of this header. Callers ask for the first three.

    Backward weight sums over all output points, and may do so in slices: kernels serve its first stage,
    KW_OP_CONV_WEIGHT_SLICES, and where that leaves slices, its second, KW_OP_CONV_SUM_SLICES. Both stages are described
    by kw_conv_problem too.
    """

    FORWARD = "conv forward", "y from x and w"
    BACKWARD_DATA = "conv backward data", "dx from dy and w"
    BACKWARD_WEIGHT = "conv backward weight", "dw from x and dy"
    WEIGHT_SLICES = "conv weight slices", "dw, or split_k slices of it in fp32 where leaves_slices is 1"
    SUM_SLICES = "conv sum of slices", "dw from its slices"


class ConvLayout(Word, c_type="kw_conv_layout", prefix="KW_CONV_"):
    """
    Storage order, outermost first. x has N images of D, H and W points, each of G groups of C / G channels; y has K / G
    channels in place of C / G. Weights are dense: G, K / G, filter points, C / G where channels are innermost; G,
    K / G, C / G, filter points in KW_CONV_NGCHW.
    """

    NWGC = "nwgc"
    NHWGC = "nhwgc"
    NDHWGC = "ndhwgc"
    NGCHW = "ngchw"


DIMS = {"nwgc": 1, "nhwgc": 2, "ndhwgc": 3, "ngchw": 2}
"""Spatial dimensions by layout."""

SPATIAL = Constant(
    "KW_CONV_SPATIAL",
    3,
    """
    Entries of the arrays below that are indexed by spatial dimension: D, H, W. A problem of fewer dimensions has 1 in
    front (extents, strides, dilations) or 0 (padding, memory strides).
    """,
)
STRIDES = Constant(
    "KW_CONV_STRIDES",
    5,
    """
    Entries of memory strides: from one image to the next, from one channel (of all groups) to the next, and along D, H
    and W. In layouts with channels innermost the second is 1.
    """,
)

_AXES = "dhw"


@record("kw_conv_problem", op=ConvOp)
class Problem:
    """
    In each spatial dimension there are (extent + pad_left + pad_right - dilation * (filter - 1) - 1) / stride + 1
    output points. Output point p and filter point t meet at the input point q = p * stride + t * dilation - pad_left.

      forward:          y[n,p,k] = act(alpha * sum over t, c of x[n,q,c] w[k,t,c] + beta * y[n,p,k] + bias + residual)

      backward data:    dx[n,q,c] = alpha * sum over k and all p, t that meet at q of dy[n,p,k] w[k,t,c] + beta * dx

      backward weight:  dw[k,t,c] = alpha * sum over n, p of dy[n,p,k] x[n,q,c] + beta * dw

    where x is 0 outside of its extents and c runs over the channels of the group of k. Every point of dx is written,
    also where stride leaves it without a partner. The struct has no padding bytes, so it can be hashed as memory; what
    a problem does not use is 0.
    """

    op: ConvOp
    dtype_x: DType
    dtype_w: DType
    dtype_y: DType
    dtype_acc: DType = member("of dx, dw and dy too")
    layout: ConvLayout = member()
    activation: Activation = member("forward only")
    bias: bool
    residual: bool = member("has the epilogue these operands? forward only")
    split_k: U32 = member("backward weight: slices of the sum; 1 = none; 0 = the dispatcher chooses. Else 1")
    leaves_slices: U32 = member(
        "KW_OP_CONV_WEIGHT_SLICES: 1 = the result is split_k sums in fp32, one after another, each of dw's shape,"
        " without alpha and beta; 0 = dw",
        in_json=False,
    )
    groups: int = member(least=1)
    n: int = member("images", least=0)
    c: int
    k: int = member("channels of x and y, of all groups", least=1)
    extent: Wholes = member("of x", length=SPATIAL, least=1, axes=_AXES)
    filter: Wholes = member(length=SPATIAL, least=1, axes=_AXES)
    stride: Wholes = member("of output points in x", length=SPATIAL, least=1, axes=_AXES)
    dilation: Wholes = member("distance of filter points in x", length=SPATIAL, least=1, axes=_AXES)
    pad_left: Wholes = member("zeros in front of x", length=SPATIAL, least=0, axes=_AXES)
    pad_right: Wholes = member("zeros behind x", length=SPATIAL, least=0, axes=_AXES)
    stride_x: Wholes = member("in memory, of x or dx", length=STRIDES)
    stride_y: Wholes = member("of y or dy, and of the residual", length=STRIDES)
    alpha: float
    beta: float = member()


PROBLEM = RECORDS[Problem]

ARGS = Struct(
    "kw_conv_args",
    (
        Field("struct_size", "uint32_t"),
        Field("reserved", "uint32_t", "0"),
        Field("a", "const void*"),
        Field("b", "const void*"),
        Field("d", "void*"),
        Field("bias", "const void*", "k values of dtype_y; null if the problem has none"),
        Field(
            "residual",
            "const void*",
            "of y's shape, dtype and strides; null if the problem has none; may be y itself",
        ),
    ),
    """
    Operands of one launch, on its device. d may hold an old result that beta scales; it overlaps nothing else.

                         a             b      d
      forward            x             w      y
      backward data      dy            w      dx
      backward weight    x             dy     dw
      weight slices      x             dy     dw, or the slices
      sum of slices      the slices    null   dw
    """,
)


class Specialization(Word, c_type="kw_conv_specialization", prefix="KW_CONV_", named=False):
    """The problems that a kernel serves: all, or those whose addresses are simpler."""

    DEFAULT = "default", "", "ANY"
    FILTER1X1_PAD0 = "filter1x1_pad0", "filters of one point, no padding", "FILTER_1X1_PAD_0"
    FILTER1X1_STRIDE1_PAD0 = (
        "filter1x1_stride1_pad0", "and strides of 1: x and y are matrices", "FILTER_1X1_STRIDE_1_PAD_0"
    )  # fmt: skip
    FILTER3X3 = "filter3x3", "three filter points in each dimension, one channel per group", "FILTER_3X3"


_Plane = Annotated[tuple[int, ...], "uint32_t"]


@record("kw_conv_traits")
class Traits:
    """What selection may know about a convolution kernel without parsing text."""

    struct_size: U32 = member(init=False)
    dtype_x: DType
    dtype_w: DType
    dtype_y: DType
    dtype_acc: DType = member()
    layout: ConvLayout = member("one with channels innermost also serves those with fewer dimensions")
    tile_m: U32
    tile_n: U32
    tile_k: U32 = member()
    wave_m: U32
    wave_n: U32
    wave_k: U32 = member()
    warp_tile_m: U32
    warp_tile_n: U32
    warp_tile_k: U32 = member()
    pad_m: U32
    pad_n: U32
    pad_k: U32 = member()
    vector_a: U32
    vector_b: U32
    vector_c: U32 = member("elements of an access: channel counts per group are multiples of them")
    specialization: Specialization = member(default=Specialization.DEFAULT)
    depthwise: bool = member("serves one channel in and one out per group, and nothing else", default=False)
    filter: _Plane = (0, 0)
    stride: _Plane = member("along H and W, of a depthwise kernel; 0 = any", length=2, default=(0, 0))
    padding: _Plane = member("on both sides, of a depthwise kernel whose filter is not 0", length=2, default=(0, 0))
    num_groups_to_merge: U32 = member(default=1)
    max_split_k: U32 = member(default=1)
    slices: U32 = member("backward weight: leaves slices where split_k > 1; else adds them up itself", default=0)
    stream_k: StreamK = member(default=StreamK.NONE)
    bias: bool = False
    residual: bool = member("exactly these and this activation are served, but see KW_ACTIVATION_ANY", default=False)
    activation: Activation = member(default=Activation.NONE)


TRAITS = RECORDS[Traits]

HEADER = Header(
    "kernelwright/convolution.h",
    """
    Grouped convolution: problems, arguments, and what a kernel's traits say.

    C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h. x is the input,
    w the weights, y the output, dx, dw and dy their gradients.
    """,
    ("kernelwright/abi.h", "kernelwright/epilogue.h"),
    (ConvOp, ConvLayout, SPATIAL, STRIDES, PROBLEM, ARGS, Specialization, TRAITS),
)
