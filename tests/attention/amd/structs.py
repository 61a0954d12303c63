"""The argument structs of AMD attention kernels, as kernelwright/hip/attention/{,gradient_}arguments.h have them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

BLOCK = 256  # work-items per workgroup of the small kernels that run beside others
Array = np.ndarray[Any, np.dtype[Any]]


class Strides(ctypes.Structure):
    """Elements from one row, head and request (or page) to the next."""

    _fields_ = [(name, ctypes.c_int32) for name in ("row", "head", "batch")]


def strides(array: Array) -> Strides:
    """Strides of an array of requests (or pages) x rows x heads x d."""
    request, row, head, _ = (stride // array.itemsize for stride in array.strides)
    return Strides(row, head, request)


def by_heads(array: Array) -> Strides:
    """Strides of an array of requests x heads x rows x d."""
    request, head, row, _ = (stride // array.itemsize for stride in array.strides)
    return Strides(row, head, request)


def _fields(**kinds: tuple[Any, str]) -> list[tuple[str, Any]]:
    return [(name, kind) for kind, names in kinds.values() for name in names.split()]


_P, _I, _F, _U = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float, ctypes.c_uint64


class Scores(ctypes.Structure):
    """kw_hip_attention_arguments."""

    _fields_ = _fields(
        pointers=(_P, "q k v o bias lse random_bytes seqstart_q seqstart_k lengths_k pages page_starts"),
        factors=(_P, "descale_q descale_k descale_v scale_o"),
        seeds=(_U, "seed offset"),
        lengths=(_I, "seqlen_q seqlen_k hdim_q hdim_v heads head_ratio"),
        strides=(Strides, "q_strides k_strides v_strides o_strides bias_strides random_strides"),
        integers=(_I, "lse_head_stride lse_batch_stride slopes_batch_stride window_left window_right mask"),
        pages=(_I, "min_seqlen_q pages_stride page_size page_count batch splits split_stride_o split_stride_lse"),
        floats=(_F, "scale soft_cap keep"),
    )


class Combine(ctypes.Structure):
    """kw_hip_combine_arguments."""

    _fields_ = _fields(
        pointers=(_P, "o_parts lse_parts o lse seqstart_q scale_o"),
        lengths=(_I, "batch seqlen_q hdim_v splits"),
        strides=(Strides, "part_strides o_strides"),
        lse=(_I, "part_lse_head_stride part_lse_batch_stride lse_head_stride lse_batch_stride"),
        splits=(_I, "split_stride_o split_stride_lse"),
    )


class PageList(ctypes.Structure):
    """kw_hip_page_list_arguments."""

    _fields_ = _fields(
        pointers=(_P, "pages page_starts last_lengths lengths_k places ends query_starts"),
        integers=(_I, "pages_stride page_size places_stride past_end queries"),
    )


class Append(ctypes.Structure):
    """kw_hip_append_arguments."""

    _fields_ = _fields(
        pointers=(_P, "q k v k_new v_new cosines sines lengths_k cache_rows pages"),
        lengths=(_I, "seqlen_q seqlen_new hdim_q hdim_v heads head_ratio"),
        strides=(Strides, "q_strides k_strides v_strides k_new_strides v_new_strides"),
        integers=(_I, "rotary_dim turn_by_row pages_stride page_size"),
    )


class Gradients(ctypes.Structure):
    """kw_hip_gradient_arguments."""

    _fields_ = _fields(
        pointers=(_P, "q k v o d_o lse d dq_sums dq dk dv bias dbias random_bytes"),
        starts=(_P, "seqstart_q seqstart_k lengths_q lengths_k"),
        seeds=(_U, "seed offset"),
        lengths=(_I, "seqlen_q seqlen_k hdim_q hdim_v heads head_ratio"),
        inputs=(Strides, "q_strides k_strides v_strides o_strides do_strides"),
        outputs=(Strides, "sums_strides dq_strides dk_strides dv_strides"),
        squares=(Strides, "bias_strides dbias_strides random_strides"),
        integers=(_I, "lse_head_stride lse_batch_stride split_stride_sums slopes_batch_stride"),
        mask=(_I, "window_left window_right mask"),
        floats=(_F, "scale keep"),
    )


class HeadSum(ctypes.Structure):
    """kw_hip_head_sum_arguments."""

    _fields_ = _fields(
        pointers=(_P, "source to"),
        integers=(_I, "batch rows heads hdim head_ratio"),
        strides=(Strides, "source_strides to_strides"),
    )


class Clear(ctypes.Structure):
    """kw_hip_clear_arguments."""

    _fields_ = _fields(pointers=(_P, "to"), counts=(_U, "count"))
