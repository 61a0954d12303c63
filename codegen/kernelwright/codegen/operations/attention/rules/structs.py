"""What rules read of the C ABI's structs, and the traits that descriptors print."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen.c_names import c_struct
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.attention.kinds import (
    AttentionOp,
    Bias,
    Family,
    Mask,
    PageLayout,
    PageTable,
    QScale,
    Rope,
)

_HEADER = "kernelwright/attention.h"
_NONE: frozenset[bool] = frozenset()


@c_struct("kw_attention_strides", _HEADER)
@dataclass(frozen=True)
class Strides:
    """kw_attention_strides: to the next request (or page), head and row, in elements."""

    request: int = 0
    head: int = 0
    row: int = 0


@c_struct("kw_attention_problem", _HEADER, op="base.op")
@dataclass(frozen=True)
class Problem:
    """kw_attention_problem."""

    op: AttentionOp
    group: bool
    dtype_q: DType
    dtype_kv: DType
    dtype_o: DType
    dtype_bias: DType | None
    mask: Mask
    bias: Bias
    lse: bool
    sink: bool
    dropout: bool
    random_bytes: bool
    kv_lengths: bool
    qscale: QScale
    page_table: PageTable
    page_layout: PageLayout
    dbias: bool
    deterministic: bool
    num_splits: int
    leaves_splits: bool
    dq_slices: int
    batch: int
    heads_q: int
    heads_kv: int
    hdim_q: int
    hdim_v: int
    max_seqlen_q: int
    max_seqlen_k: int
    total_q: int
    total_k: int
    window_left: int
    window_right: int
    min_seqlen_q: int
    pages: int
    page_size: int
    page_table_stride: int
    slopes_stride: int
    scale: float
    soft_cap: float
    q: Strides
    k: Strides
    v: Strides
    o: Strides
    bias_strides: Strides
    d_o: Strides
    dq: Strides
    dk: Strides
    dv: Strides
    dbias_strides: Strides


@c_struct("kw_append_problem", _HEADER)
@dataclass(frozen=True)
class Append:
    """kw_append_problem."""

    dtype: DType
    dtype_rotary: DType | None
    rope: Rope
    rotates_q: bool
    page_table: PageTable
    page_layout: PageLayout
    batch: int
    heads_q: int
    heads_kv: int
    hdim_q: int
    hdim_v: int
    seqlen_q: int
    seqlen_new: int
    capacity: int
    pages: int
    page_size: int
    page_table_stride: int
    rotary_dim: int
    rotary_places: int
    q: Strides
    q_out: Strides
    k: Strides
    v: Strides
    k_cache: Strides
    v_cache: Strides


@c_struct("kw_attention_traits", _HEADER)
@dataclass(frozen=True)
class Traits:
    """kw_attention_traits; what a family does not read is 0 or empty."""

    family: Family
    dtype_q: DType
    dtype_kv: DType
    dtype_o: DType
    dtype_bias: DType | None = None
    hdim_q: int = 0
    hdim_v: int = 0
    vector_q: int = 0
    vector_v: int = 0
    pad_s: bool = False
    pad_sk: bool = False
    pad_d: bool = False
    pad_dv: bool = False
    tile_m0: int = 0
    tile_n0: int = 0
    tile_k0: int = 0
    tile_n1: int = 0
    tile_k1: int = 0
    groups: frozenset[bool] = _NONE
    masks: frozenset[Mask] = frozenset()
    biases: frozenset[Bias] = frozenset()
    lses: frozenset[bool] = _NONE
    sinks: frozenset[bool] = _NONE
    dropouts: frozenset[bool] = _NONE
    random_bytes: frozenset[bool] = _NONE
    soft_caps: frozenset[bool] = _NONE
    kv_lengths: frozenset[bool] = _NONE
    dbiases: frozenset[bool] = _NONE
    deterministics: frozenset[bool] = _NONE
    min_seqlens_q: frozenset[bool] = _NONE
    qscales: frozenset[QScale] = frozenset()
    page_tables: frozenset[PageTable] = frozenset()
    page_layouts: frozenset[PageLayout] = frozenset()
    page_size: int = 0
    ropes: frozenset[Rope] = frozenset()
    max_splits: int = 0
    leaves_splits: frozenset[bool] = _NONE
    leaves_dq: int = 0
    max_seqlen_q: int = 0
    max_group: int = 0
    threads: int = 0
    blocks_per_cu: int = 0
    few_blocks: int = 0
    selection_rank: int = 0
    packs_heads: int = 0
    work_percent: int = 0


BOTH = frozenset({False, True})


def flag(has: bool) -> frozenset[bool]:
    """A kernel that has something and also serves problems that lack it; or that lacks it."""
    return BOTH if has else frozenset({False})


def only(value: bool) -> frozenset[bool]:
    """A kernel that serves problems of one kind."""
    return frozenset({value})
