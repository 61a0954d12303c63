"""Which attention problems an NVIDIA kernel serves: strides, pages, scales and grids."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.widths import INT32_MAX, element_bytes, finite_fp32
from kernelwright.codegen.operations.attention.kinds import AttentionOp, Bias, Family, Rope
from kernelwright.codegen.operations.attention.rules.checks import append_traits_match, traits_match
from kernelwright.codegen.operations.attention.rules.structs import Append, Problem, Strides, Traits

HEADER = "launchers/cuda/attention/conditions.h"
PREFIX = "kw_cuda_attention"

# TMA addresses rows by multiples of 16 bytes, below 2^40 bytes (CUDA driver API, cuTensorMapEncodeTiled). Copies of 16
# bytes, which the other kernels use, need the same multiples.
VECTOR_BYTES = 16
STRIDE_LIMIT = 1 << 40
# Rows are counted in 32 bits, and 2^30 of them is where load.hpp puts the end of a request.
MOST_ROWS = 1 << 30
# Of the second and third extent of a grid.
MOST_BLOCKS = 65535
# Rows that pages are copied by at least: least_page_part of pages.hpp.
PAGE_PART = 8


def extent_fits(field: str, extent: int) -> Refusal:
    """Lengths are below 2^30."""
    if extent >= 0 and extent < MOST_ROWS:
        return None
    return f"{field} is {extent}; this kernel takes 0 to 2^30 - 1"


def stride_fits(tensor: str, which: str, stride: int, dtype: DType) -> Refusal:
    """Strides are multiples of 16 bytes."""
    size = element_bytes(dtype)
    if stride >= 0 and stride < STRIDE_LIMIT // size and stride * size % VECTOR_BYTES == 0:
        return None
    return (
        f"the {which} stride of {tensor} is {stride}; this kernel needs multiples of 16 bytes, that is of"
        f" {VECTOR_BYTES // size} {dtype} elements, from 0 to 2^40 bytes"
    )


def tensor_fits(name: str, strides: Strides, rows: int, dtype: DType) -> Refusal:
    """Rows of a tensor are their own."""
    return (
        stride_fits(name, "row", strides.row, dtype)
        or stride_fits(name, "head", strides.head, dtype)
        or stride_fits(name, "request", strides.request, dtype)
        or (
            f"the row stride of {name} is 0; this kernel reads rows of their own"
            if strides.row == 0 and rows > 1
            else None
        )
    )


def packed_fits(p: Problem, name: str, strides: Strides) -> Refusal:
    """With a length of keys for each request, requests are found as rows of one packed tensor."""
    if p.group or not p.kv_lengths or p.batch < 2 or strides.row == 0:
        return None
    if strides.request % strides.row != 0:
        return (
            f"the request stride of {name} is {strides.request}; with kv_lengths this kernel needs a multiple of the"
            f" row stride {strides.row}"
        )
    if strides.request // strides.row * p.batch >= MOST_ROWS:
        return f"{name} spans 2^30 rows or more; with kv_lengths this kernel takes fewer"
    return None


def tiles_fit(p: Problem) -> Refusal:
    """Tiles of queries are counted in 31 bits."""
    longest = p.max_seqlen_q // 64 + 1
    tiles = p.total_q // 64 + p.batch if p.group else p.batch * longest
    if p.heads_q > 0 and tiles > INT32_MAX // 2 // p.heads_q:
        return f"{p.heads_q} heads with about {tiles} tiles of queries; this kernel counts fewer than 2^30 tiles"
    return None


def sizes_fit(p: Problem) -> Refusal:
    """Lengths of the problem."""
    return (
        extent_fits("batch", p.batch)
        or extent_fits("heads_q", p.heads_q)
        or extent_fits("heads_kv", p.heads_kv)
        or extent_fits("max_seqlen_q", p.max_seqlen_q)
        or extent_fits("max_seqlen_k", p.max_seqlen_k)
        or extent_fits("total_q", p.total_q)
        or extent_fits("total_k", p.total_k)
        or tiles_fit(p)
    )


def scale_fits(p: Problem) -> Refusal:
    """Kernels find maxima before they scale."""
    if not p.scale > 0.0 or not finite_fp32(p.scale):
        return f"scale is {p.scale:g}; this kernel, which finds maxima before it scales, serves finite scales above 0"
    if p.soft_cap == 0.0 or (p.soft_cap > 0.0 and finite_fp32(p.scale / p.soft_cap)):
        return None
    return f"soft_cap is {p.soft_cap:g}; this kernel serves finite caps above 0"


def cache_fits(p: Problem, name: str, strides: Strides) -> Refusal:
    """Pages of a cache that has some."""
    if p.page_size % PAGE_PART != 0:
        return f"page_size is {p.page_size}; this kernel serves multiples of {PAGE_PART}"
    if strides.row == 0 or strides.request % strides.row != 0:
        return (
            f"pages of {name} are {strides.request} apart; this kernel needs a multiple of the row stride {strides.row}"
        )
    if strides.request // strides.row * p.pages >= MOST_ROWS:
        return f"{name} spans 2^30 rows or more; this kernel takes fewer"
    if p.page_table_stride * p.batch < MOST_ROWS:
        return None
    return "the page table has 2^30 entries or more"


def pages_fit(p: Problem, name: str, strides: Strides) -> Refusal:
    """Pages are found as rows of the whole cache, and copied by 8 rows or more."""
    return (
        extent_fits("pages", p.pages)
        or extent_fits("page_size", p.page_size)
        or (cache_fits(p, name, strides) if p.pages != 0 else None)
    )


def grid_fits(t: Traits, p: Problem) -> Refusal:
    """Heads that are an extent of the grid."""
    if t.family != Family.FWD_SPLITKV and t.family != Family.BWD_DQ_DK_DV:
        return None
    if p.heads_kv > MOST_BLOCKS:
        return f"heads_kv is {p.heads_kv}; this kernel serves up to {MOST_BLOCKS}"
    return extent_fits("pages", p.pages) or extent_fits("page_size", p.page_size)


def part_fits(t: Traits, p: Problem) -> Refusal:
    """Tensors of KW_OP_ATTENTION_PART."""
    paged = t.family == Family.BATCH_PREFILL
    whole = t.family == Family.FWD
    return (
        scale_fits(p)
        or grid_fits(t, p)
        or tensor_fits("q", p.q, p.max_seqlen_q, p.dtype_q)
        or tensor_fits("k", p.k, p.max_seqlen_k, p.dtype_kv)
        or tensor_fits("v", p.v, p.max_seqlen_k, p.dtype_kv)
        or tensor_fits("o", p.o, p.max_seqlen_q, p.dtype_o)
        or (pages_fit(p, "k", p.k) if paged else None)
        or (pages_fit(p, "v", p.v) if paged else None)
        or (packed_fits(p, "k", p.k) if whole else None)
        or (packed_fits(p, "v", p.v) if whole else None)
    )


def gradients_fit(t: Traits, p: Problem) -> Refusal:
    """Tensors of KW_OP_ATTENTION_DQ_DK_DV."""
    return (
        scale_fits(p)
        or grid_fits(t, p)
        or (
            "scores have a soft cap and a bias; this kernel computes gradients of one of them"
            if p.soft_cap != 0.0 and p.bias != Bias.NONE
            else None
        )
        or (
            f"{p.batch} requests of {p.heads_q} heads; this kernel serves up to {MOST_BLOCKS} of each"
            if p.batch > MOST_BLOCKS or p.heads_q > MOST_BLOCKS
            else None
        )
        or tensor_fits("q", p.q, p.max_seqlen_q, p.dtype_q)
        or tensor_fits("k", p.k, p.max_seqlen_k, p.dtype_kv)
        or tensor_fits("v", p.v, p.max_seqlen_k, p.dtype_kv)
        or tensor_fits("d_o", p.d_o, p.max_seqlen_q, p.dtype_o)
        or tensor_fits("dq", p.dq, p.max_seqlen_q, p.dtype_q)
        or tensor_fits("dk", p.dk, p.max_seqlen_k, p.dtype_kv)
        or tensor_fits("dv", p.dv, p.max_seqlen_k, p.dtype_kv)
    )


def memory_fits(t: Traits, p: Problem) -> Refusal:
    """Tensors that the stage touches, where there are any."""
    if p.batch == 0 or p.heads_q == 0:
        return None
    if p.op == AttentionOp.ATTENTION_DQ_DK_DV:
        return gradients_fit(t, p)
    if p.max_seqlen_q == 0:
        return None
    if p.op == AttentionOp.ATTENTION_PART:
        return part_fits(t, p)
    return tensor_fits("o", p.o, p.max_seqlen_q, p.dtype_o)


def check(t: Traits, p: Problem) -> Refusal:
    """What is checked of attention."""
    return traits_match(t, p) or sizes_fit(p) or memory_fits(t, p)


def rotary_fits(p: Append) -> Refusal:
    """A thread turns 8 elements at a time."""
    step = 16 if p.rope == Rope.HALF else 8
    if p.rope == Rope.NONE or p.rotary_dim % step == 0:
        return None
    return f"rotary_dim is {p.rotary_dim}; this kernel serves multiples of {step}"


def append_check(t: Traits, p: Append) -> Refusal:
    """The same of KW_OP_ATTENTION_APPEND."""
    return (
        append_traits_match(t, p)
        or rotary_fits(p)
        or extent_fits("batch", p.batch)
        or extent_fits("capacity", p.capacity)
        or extent_fits("page_size", p.page_size)
        or extent_fits("seqlen_new", p.seqlen_new)
        or extent_fits("seqlen_q", p.seqlen_q)
        or extent_fits("heads_kv", p.heads_kv)
        or extent_fits("heads_q", p.heads_q)
        or extent_fits("rotary_places", p.rotary_places)
        or extent_fits("rows of k", p.batch * p.seqlen_new * p.heads_kv)
        or extent_fits("rows of q", p.batch * p.seqlen_q * p.heads_q)
        or tensor_fits("q", p.q, 0, p.dtype)
        or tensor_fits("q_out", p.q_out, 0, p.dtype)
        or tensor_fits("k", p.k, 0, p.dtype)
        or tensor_fits("v", p.v, 0, p.dtype)
        or tensor_fits("k_cache", p.k_cache, p.capacity, p.dtype)
        or tensor_fits("v_cache", p.v_cache, p.capacity, p.dtype)
    )
