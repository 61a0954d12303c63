"""The GEMM structs of the C ABI in ctypes, and the numbers that stand in them."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_double, c_int32, c_uint32, c_uint64, c_void_p

OP_GEMM, OP_GROUPED_GEMM = 1, 2
MAX_D = 4  # D tensors of one problem

# By name here, by position in the C ABI.
ACTIVATIONS = ("none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh")
D_OPS = ("add", "multiply")


class GemmProblem(ctypes.Structure):
    """``kw_gemm_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, c_uint32) for name in ("layout_a", "layout_b", "layout_c", "split_k")],
        *[(name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")],
        ("alpha", c_double),
        ("beta", c_double),
        *[(name, ctypes.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c")],
        *[(name, c_uint32) for name in ("num_d", "d_op", "activation", "reserved")],
        *[(name, ctypes.c_int64 * MAX_D) for name in ("ld_multi_d", "stride_multi_d")],
        ("b_format", c_uint64),
    ]


class GemmArgs(ctypes.Structure):
    """``kw_gemm_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("a", "b", "c", "d")],
        ("multi_d", c_void_p * MAX_D),
    ]


class GemmGroup(ctypes.Structure):
    """``kw_gemm_group``."""

    _fields_ = [(name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")]


class GroupedGemmProblem(ctypes.Structure):
    """``kw_grouped_gemm_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, c_uint32) for name in ("layout_a", "layout_b", "layout_c", "reserved")],
        ("group_count", ctypes.c_int64),
        ("groups", POINTER(GemmGroup)),
        ("alpha", c_double),
        ("beta", c_double),
    ]


class GroupedGemmArgs(ctypes.Structure):
    """``kw_grouped_gemm_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group_count", ctypes.c_int64),
        ("groups", POINTER(GemmGroup)),
        *[(name, POINTER(c_void_p)) for name in ("a", "b", "c", "d")],
    ]


class GemmTraits(ctypes.Structure):
    """``kw_gemm_traits``, which ``kw_kernel.traits`` of a GEMM kernel points to."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, c_uint32) for name in ("layout_a", "layout_b", "layout_c")],
        *[(f"{kind}_{axis}", c_uint32) for kind in ("tile", "wave", "warp_tile", "pad") for axis in "mnk"],
        *[(name, c_uint32) for name in ("persistent", "max_split_k", "num_d", "d_op", "activation", "batched")],
        ("stream_k", c_uint32),
        *[(name, ctypes.c_uint16) for name in ("cluster_m", "cluster_n")],
        ("b_format", c_uint64),
    ]


class GemmExtension(ctypes.Structure):
    """``kw_gemm_extension``, which ``kw_kernel.extension`` of a kernel that shuffles B points to."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "reserved")],
        ("shuffle_b_bytes", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)),
        ("shuffle_b", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]
