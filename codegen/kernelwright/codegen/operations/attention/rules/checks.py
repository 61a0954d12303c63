"""Which problems a kernel may serve as far as its traits tell, and numbers that follow from a problem."""

from __future__ import annotations

from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.shared import dtype_matches
from kernelwright.codegen.formulas.widths import parts
from kernelwright.codegen.operations.attention.kinds import AttentionOp, Bias, Family, Mask, PageLayout, PageTable, Rope
from kernelwright.codegen.operations.attention.rules.structs import Append, Problem, Traits

HEADER = "kernelwright/attention/checks.h"
PREFIX = "kw_attention"


def rows(p: Problem) -> int:
    """Rows that LSE, D and partial results have for each element of "per row" in kernelwright/attention.h."""
    return p.heads_q * (p.total_q if p.group else p.batch * p.max_seqlen_q)


def mask_kind(p: Problem) -> Mask:
    """The mask of traits that serve exactly this problem: windows are generic."""
    causal = p.window_left < 0 and p.window_right == 0
    if p.mask == Mask.NONE or causal:
        return p.mask
    return Mask.GENERIC


def has(served: frozenset[bool], asked: bool, what: str) -> Refusal:
    """The kernel serves problems with, or without, something."""
    if asked in served:
        return None
    if asked:
        return f"the problem has {what}, this kernel has not"
    return f"the problem has no {what}, this kernel has"


def reads_q(op: AttentionOp) -> bool:
    """Whether a stage reads Q."""
    return op not in (AttentionOp.ATTENTION_COMBINE, AttentionOp.ATTENTION_DOT)


def reads_kv(op: AttentionOp) -> bool:
    """Whether a stage reads K and V."""
    return op in (AttentionOp.ATTENTION_PART, AttentionOp.ATTENTION_DQ_DK_DV)


def reads_o(op: AttentionOp) -> bool:
    """Whether a stage reads or writes O."""
    return op != AttentionOp.ATTENTION_CONVERT_DQ


def dtypes_match(t: Traits, p: Problem) -> Refusal:
    """A stage is compared by the tensors that it touches."""
    biased = p.bias == Bias.ELEMENTWISE and reads_kv(p.op)
    return (
        (dtype_matches("dtype_q", p.dtype_q, t.dtype_q) if reads_q(p.op) else None)
        or (dtype_matches("dtype_kv", p.dtype_kv, t.dtype_kv) if reads_kv(p.op) else None)
        or (dtype_matches("dtype_o", p.dtype_o, t.dtype_o) if reads_o(p.op) else None)
        or (dtype_matches("dtype_bias", p.dtype_bias, t.dtype_bias) if biased else None)
    )


def hdim_matches(most: int, pad: bool, vector: int, hdim: int, what: str) -> Refusal:
    """A head dimension is not too large, exact where it is not padded, and a multiple of the vector."""
    if most != 0 and (hdim > most or (not pad and hdim != most)):
        return f"{what} is {hdim}, this kernel serves {'up to ' if pad else ''}{most}"
    if vector > 1 and hdim % vector != 0:
        return f"{what} is {hdim}, this kernel serves multiples of {vector}"
    return None


def hdims_match(t: Traits, p: Problem) -> Refusal:
    """Head dimensions of the tensors that a stage touches."""
    return (hdim_matches(t.hdim_q, t.pad_d, t.vector_q, p.hdim_q, "hdim_q") if reads_q(p.op) else None) or (
        hdim_matches(t.hdim_v, t.pad_dv, t.vector_v, p.hdim_v, "hdim_v") if reads_o(p.op) else None
    )


def lengths_match(t: Traits, p: Problem) -> Refusal:
    """Lengths are whole tiles of a kernel without padding; lengths that are known on the device only need padding."""
    if t.max_group != 0 and p.heads_q // p.heads_kv > t.max_group:
        return "this kernel serves fewer heads of Q for each of K and V"
    if t.max_seqlen_q != 0 and p.max_seqlen_q > t.max_seqlen_q:
        return "this kernel serves few queries only"
    tiles_q = not t.pad_s and t.tile_m0 != 0
    tiles_k = not t.pad_sk and t.tile_n0 != 0
    if reads_kv(p.op) and tiles_k and (p.group or p.kv_lengths or p.max_seqlen_k % t.tile_n0 != 0):
        return "this kernel serves numbers of keys that are multiples of its tile"
    if tiles_q and (p.group or p.max_seqlen_q % t.tile_m0 != 0):
        return "this kernel serves numbers of queries that are multiples of its tile"
    return None


def scores_match(t: Traits, p: Problem) -> Refusal:
    """The kernel has the features of the scores, and none that the problem lacks."""
    kind = mask_kind(p)
    if kind not in t.masks and Mask.GENERIC not in t.masks:
        return f"mask is {kind}, which this kernel does not serve"
    if p.bias not in t.biases:
        return f"bias is {p.bias}, which this kernel does not serve"
    return (
        has(t.dropouts, p.dropout, "dropout")
        or has(t.random_bytes, p.random_bytes, "random bytes")
        or has(t.soft_caps, p.soft_cap != 0.0, "soft cap")
        or has(t.kv_lengths, p.kv_lengths, "kv_lengths")
    )


def pages_match(t: Traits, table: PageTable, layout: PageLayout, page_size: int) -> Refusal:
    """Pages are those of the kernel."""
    if table not in t.page_tables:
        return f"page table is {table}, which this kernel does not serve"
    if table == PageTable.NONE:
        return None
    if t.page_size != 0 and page_size != t.page_size:
        return f"page_size is {page_size}, this kernel serves {t.page_size}"
    if layout not in t.page_layouts:
        return f"page_layout is {layout}, which this kernel does not serve"
    return None


def part_matches(t: Traits, p: Problem) -> Refusal:
    """Of KW_OP_ATTENTION_PART. Splits always have LSE; a split-KV kernel that writes O itself writes it if asked."""
    return (
        scores_match(t, p)
        or pages_match(t, p.page_table, p.page_layout, p.page_size)
        or has(t.sinks, p.sink, "sinks")
        or has(t.min_seqlens_q, p.min_seqlen_q != 0, "min_seqlen_q")
        or (f"qscale is {p.qscale}, which this kernel does not serve" if p.qscale not in t.qscales else None)
        or (has(t.lses, p.lse, "LSE") if t.family != Family.FWD_SPLITKV else None)
    )


def stage_matches(t: Traits, p: Problem) -> Refusal:
    """What the stage that the kernel serves asks for."""
    if p.op == AttentionOp.ATTENTION_PART:
        return part_matches(t, p)
    if p.op == AttentionOp.ATTENTION_COMBINE:
        return has(t.lses, p.lse, "LSE")
    if p.op != AttentionOp.ATTENTION_DQ_DK_DV:
        return None
    return (
        scores_match(t, p)
        or has(t.dbiases, p.dbias, "dbias")
        or has(t.deterministics, p.deterministic, "a fixed order of sums")
    )


def variant_matches(t: Traits, p: Problem) -> Refusal:
    """Everything but types, head dimensions and choices: what holds before the dispatcher has chosen."""
    return has(t.groups, p.group, "lengths of each request (group mode)") or lengths_match(t, p) or stage_matches(t, p)


def dq_slices(t: Traits, p: Problem) -> int:
    """Sums of dQ that a kernel leaves."""
    return parts(max(p.max_seqlen_k, 1), max(t.tile_n0, 1)) if t.leaves_dq == 2 else t.leaves_dq


def leaves(t: Traits, splits: int) -> bool:
    """Whether a part with so many splits leaves them to a combination."""
    return True in t.leaves_splits and (splits > 1 or False not in t.leaves_splits)


def choices_match(t: Traits, p: Problem) -> Refusal:
    """The kernel splits so, and leaves what the problem says."""
    part = p.op == AttentionOp.ATTENTION_PART
    combine = p.op == AttentionOp.ATTENTION_COMBINE
    if (part or combine) and (p.num_splits < 1 or p.num_splits > t.max_splits):
        return f"num_splits is {p.num_splits}, this kernel serves 1 to {t.max_splits}"
    left = leaves(t, p.num_splits)
    if part and p.leaves_splits != left:
        return f"leaves_splits is {1 if p.leaves_splits else 0}, this kernel serves {1 if left else 0}"
    slices = dq_slices(t, p)
    if p.op == AttentionOp.ATTENTION_DQ_DK_DV and p.dq_slices != slices:
        return f"dq_slices is {p.dq_slices}, this kernel leaves {slices}"
    return None


def traits_match(t: Traits, p: Problem) -> Refusal:
    """All of the above: what a backend checks of a problem before its own conditions."""
    return dtypes_match(t, p) or hdims_match(t, p) or variant_matches(t, p) or choices_match(t, p)


def append_dtypes_match(t: Traits, p: Append) -> Refusal:
    """The same of KW_OP_ATTENTION_APPEND: first the types,"""
    return dtype_matches("dtype", p.dtype, t.dtype_kv) or (
        dtype_matches("dtype_rotary", p.dtype_rotary, t.dtype_bias) if p.rope != Rope.NONE else None
    )


def append_hdims_match(t: Traits, p: Append) -> Refusal:
    """then the head dimensions,"""
    return hdim_matches(t.hdim_q, t.pad_d, t.vector_q, p.hdim_q, "hdim_q") or hdim_matches(
        t.hdim_v, t.pad_dv, t.vector_v, p.hdim_v, "hdim_v"
    )


def append_variant_matches(t: Traits, p: Append) -> Refusal:
    """then the rest,"""
    return pages_match(t, p.page_table, p.page_layout, p.page_size) or (
        f"rotary embedding is {p.rope}, which this kernel does not serve" if p.rope not in t.ropes else None
    )


def append_traits_match(t: Traits, p: Append) -> Refusal:
    """and all of it."""
    return append_dtypes_match(t, p) or append_hdims_match(t, p) or append_variant_matches(t, p)
