"""Grouped convolution in the C ABI: problems, operands of a launch, traits of kernels."""

from __future__ import annotations

from kernelwright.problems.fields import Constant, Field, Header, Struct, Word
from kernelwright.problems.shared import Activation, DType, StreamK


class ConvOp(Word, c_type="kw_conv_op", prefix="KW_OP_CONV_", first=16):
    """
    Values of kw_problem.op: 16 to 31 are of this header. The first three are what callers pose.

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
PROBLEM = Struct(
    "kw_conv_problem",
    (
        Field("dtype_x dtype_w dtype_y dtype_acc", DType, "of dx, dw and dy too"),
        Field("layout", ConvLayout),
        Field("activation", Activation, "forward only"),
        Field("bias residual", "uint32_t", "has the epilogue these operands? forward only", least=0, most=1),
        Field(
            "split_k",
            "uint32_t",
            "backward weight: slices of the sum; 1 = none; 0 = the dispatcher chooses. Else 1",
        ),
        Field(
            "leaves_slices",
            "uint32_t",
            "KW_OP_CONV_WEIGHT_SLICES: 1 = the result is split_k sums in fp32, one after another, each of dw's shape,"
            " without alpha and beta; 0 = dw",
            in_json=False,
        ),
        Field("groups", "int64_t", least=1),
        Field("n", "int64_t", "images", least=0),
        Field("c k", "int64_t", "channels of x and y, of all groups", least=1),
        Field("extent", "int64_t", "of x", SPATIAL, least=1, axes=_AXES),
        Field("filter", "int64_t", "", SPATIAL, least=1, axes=_AXES),
        Field("stride", "int64_t", "of output points in x", SPATIAL, least=1, axes=_AXES),
        Field("dilation", "int64_t", "distance of filter points in x", SPATIAL, least=1, axes=_AXES),
        Field("pad_left", "int64_t", "zeros in front of x", SPATIAL, least=0, axes=_AXES),
        Field("pad_right", "int64_t", "zeros behind x", SPATIAL, least=0, axes=_AXES),
        Field("stride_x", "int64_t", "in memory, of x or dx", STRIDES),
        Field("stride_y", "int64_t", "of y or dy, and of the residual", STRIDES),
        Field("alpha beta", "double"),
    ),
    """
    In each spatial dimension there are (extent + pad_left + pad_right - dilation * (filter - 1) - 1) / stride + 1
    output points. Output point p and filter point t meet at the input point q = p * stride + t * dilation - pad_left.

      forward:          y[n,p,k] = act(alpha * sum over t, c of x[n,q,c] w[k,t,c] + beta * y[n,p,k] + bias + residual)

      backward data:    dx[n,q,c] = alpha * sum over k and all p, t that meet at q of dy[n,p,k] w[k,t,c] + beta * dx

      backward weight:  dw[k,t,c] = alpha * sum over n, p of dy[n,p,k] x[n,q,c] + beta * dw

    where x is 0 outside of its extents and c runs over the channels of the group of k. Every point of dx is written,
    also where stride leaves it without a partner. The struct has no padding bytes, so it can be hashed as memory; what
    a problem does not use is 0.
    """,
    op=ConvOp,
)

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


TRAITS = Struct(
    "kw_conv_traits",
    (
        Field("struct_size", "uint32_t"),
        Field("dtype_x dtype_w dtype_y dtype_acc", DType),
        Field("layout", ConvLayout, "one with channels innermost also serves those with fewer dimensions"),
        Field("tile_m tile_n tile_k", "uint32_t"),
        Field("wave_m wave_n wave_k", "uint32_t"),
        Field("warp_tile_m warp_tile_n warp_tile_k", "uint32_t"),
        Field("pad_m pad_n pad_k", "uint32_t"),
        Field(
            "vector_a vector_b vector_c",
            "uint32_t",
            "elements of an access: channel counts per group are multiples of them",
        ),
        Field("specialization", Specialization),
        Field("depthwise", "uint32_t", "serves one channel in and one out per group, and nothing else"),
        Field("filter stride", "uint32_t", "along H and W, of a depthwise kernel; 0 = any", 2),
        Field("padding", "uint32_t", "on both sides, of a depthwise kernel whose filter is not 0", 2),
        Field("num_groups_to_merge", "uint32_t"),
        Field("max_split_k", "uint32_t"),
        Field("slices", "uint32_t", "backward weight: leaves slices where split_k > 1; else adds them up itself"),
        Field("stream_k", StreamK),
        Field("bias residual activation", "uint32_t", "exactly these are served, but see KW_ACTIVATION_ANY"),
    ),
    "What selection may know about a convolution kernel without parsing text.",
)

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
