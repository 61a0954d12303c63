"""The convolution structs of the C ABI in ctypes, and the numbers that stand in them."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_uint32, c_void_p

# By name here, by number in the C ABI. The last two are stages of backward weight, which callers do not pose.
DIRECTIONS = {"forward": 16, "backward_data": 17, "backward_weight": 18}
STAGES = {19: "backward_weight", 20: "backward_weight"}
LAYOUTS = ("nwgc", "nhwgc", "ndhwgc", "ngchw")
ACTIVATIONS = ("none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh")


class ConvProblem(ctypes.Structure):
    """``kw_conv_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "dtype_x", "dtype_w", "dtype_y", "dtype_acc", "layout")],
        *[(name, c_uint32) for name in ("activation", "bias", "residual", "split_k", "leaves_slices")],
        *[(name, c_int64) for name in ("groups", "n", "c", "k")],
        *[(name, c_int64 * 3) for name in ("extent", "filter", "stride", "dilation", "pad_left", "pad_right")],
        *[(name, c_int64 * 5) for name in ("stride_x", "stride_y")],
        ("alpha", c_double),
        ("beta", c_double),
    ]


class ConvArgs(ctypes.Structure):
    """``kw_conv_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("a", "b", "d", "bias", "residual")],
    ]


class ConvTraits(ctypes.Structure):
    """``kw_conv_traits``, which ``kw_kernel.traits`` of a convolution kernel points to."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "dtype_x", "dtype_w", "dtype_y", "dtype_acc", "layout")],
        *[(f"{kind}_{axis}", c_uint32) for kind in ("tile", "wave", "warp_tile", "pad") for axis in "mnk"],
        *[(f"vector_{operand}", c_uint32) for operand in "abc"],
        *[(name, c_uint32) for name in ("specialization", "depthwise")],
        *[(name, c_uint32 * 2) for name in ("filter", "stride", "padding")],
        *[(name, c_uint32) for name in ("num_groups_to_merge", "max_split_k", "slices", "stream_k")],
        *[(name, c_uint32) for name in ("bias", "residual", "activation")],
    ]
