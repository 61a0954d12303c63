"""The attention structs of the C ABI in ctypes, and the numbers that stand in them."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_uint32, c_uint64, c_void_p

VERSION = 1  # KW_ATTENTION_VERSION
# By name here, by number in the C ABI. Stages are not posed by callers.
DIRECTIONS = {"forward": 32, "backward": 33}
STAGES = {34: "forward", 35: "forward", 37: "backward", 38: "backward", 39: "backward"}
APPEND = 36
MASKS = ("none", "top_left", "bottom_right")
BIASES = ("none", "elementwise", "alibi")
QSCALES = ("none", "per_tensor", "block_scale", "kv_block_scale")
PAGE_TABLES = ("none", "block", "list")
PAGE_LAYOUTS = ("linear", "vectorized")
ROPES = ("none", "interleaved", "half")


class AttentionStrides(ctypes.Structure):
    """``kw_attention_strides``."""

    _fields_ = [("request", c_int64), ("head", c_int64), ("row", c_int64)]


class AttentionProblem(ctypes.Structure):
    """``kw_attention_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "version", "group", "dtype_q", "dtype_kv", "dtype_o")],
        *[(name, c_uint32) for name in ("dtype_bias", "mask", "bias", "lse", "sink", "dropout", "random_bytes")],
        *[(name, c_uint32) for name in ("kv_lengths", "qscale", "page_table", "page_layout", "dbias")],
        *[(name, c_uint32) for name in ("deterministic", "num_splits", "leaves_splits", "dq_slices", "reserved")],
        *[(name, c_int64) for name in ("batch", "heads_q", "heads_kv", "hdim_q", "hdim_v")],
        *[(name, c_int64) for name in ("max_seqlen_q", "max_seqlen_k", "total_q", "total_k")],
        *[(name, c_int64) for name in ("window_left", "window_right", "min_seqlen_q", "pages", "page_size")],
        *[(name, c_int64) for name in ("page_table_stride", "slopes_stride", "scale_block_q", "scale_block_k")],
        *[(name, c_double) for name in ("scale", "soft_cap", "dropout_p")],
        *[(name, AttentionStrides) for name in ("q", "k", "v", "o", "bias_strides")],
        *[(name, AttentionStrides) for name in ("d_o", "dq", "dk", "dv", "dbias_strides")],
    ]


class AttentionArgs(ctypes.Structure):
    """``kw_attention_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("q", "k", "v", "o", "bias", "sinks", "lse", "random_bytes")],
        *[(name, c_void_p) for name in ("cu_seqlens_q", "cu_seqlens_k", "seqlens_k")],
        *[(name, c_void_p) for name in ("page_table", "page_indptr", "last_page_lengths")],
        *[(name, c_void_p) for name in ("descale_q", "descale_k", "descale_v", "scale_o")],
        ("seed", c_uint64),
        ("offset", c_uint64),
        *[(name, c_void_p) for name in ("o_splits", "lse_splits", "d_o", "d", "dq", "dk", "dv", "dbias", "dq_sums")],
    ]


class AppendProblem(ctypes.Structure):
    """``kw_append_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "version", "dtype", "dtype_rotary", "rope", "rotates_q")],
        *[(name, c_uint32) for name in ("page_table", "page_layout", "reserved")],
        *[(name, c_int64) for name in ("batch", "heads_q", "heads_kv", "hdim_q", "hdim_v", "seqlen_q", "seqlen_new")],
        *[(name, c_int64) for name in ("capacity", "pages", "page_size", "page_table_stride")],
        *[(name, c_int64) for name in ("rotary_dim", "rotary_places")],
        *[(name, AttentionStrides) for name in ("q", "q_out", "k", "v", "k_cache", "v_cache")],
    ]


class AppendArgs(ctypes.Structure):
    """``kw_append_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("q", "q_out", "k", "v", "k_cache", "v_cache")],
        *[(name, c_void_p) for name in ("seqlens_k", "page_table", "cos", "sin")],
    ]


class AttentionTraits(ctypes.Structure):
    """``kw_attention_traits``, which ``kw_kernel.traits`` of an attention kernel points to."""

    _fields_ = [
        (name, c_uint32)
        for name in (
            *("struct_size", "family", "dtype_q", "dtype_kv", "dtype_o", "dtype_bias", "hdim_q", "hdim_v"),
            *("vector_q", "vector_v", "pad_s", "pad_sk", "pad_d", "pad_dv"),
            *("tile_m0", "tile_n0", "tile_k0", "tile_n1", "tile_k1", "groups", "masks", "biases", "lses", "sinks"),
            *("dropouts", "random_bytes", "soft_caps", "kv_lengths", "dbiases", "deterministics", "min_seqlens_q"),
            *("qscales", "page_tables", "page_layouts", "page_size", "ropes", "max_splits", "leaves_splits"),
            *("leaves_dq", "max_seqlen_q", "max_group", "threads", "blocks_per_cu", "few_blocks", "selection_rank"),
            *("packs_heads", "work_percent"),
        )
    ]
