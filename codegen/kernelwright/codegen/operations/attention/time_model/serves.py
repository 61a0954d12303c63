"""Whether an attention kernel serves a problem, or a stage of one: its backend's rules, on what the C ABI will say."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Refusal
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
from kernelwright.codegen.operations.attention.rules import checks, cpu, cuda, hip
from kernelwright.codegen.operations.attention.rules.structs import Append, Problem, Strides
from kernelwright.codegen.operations.attention.time_model.append import TimedAppend
from kernelwright.codegen.operations.attention.time_model.problem import TENSORS, Stage, TimedProblem
from kernelwright.codegen.operations.attention.time_model.traits import Described

STAGES = {
    Family.FWD: Stage.PART,
    Family.FWD_SPLITKV: Stage.PART,
    Family.FWD_PAGEDKV: Stage.PART,
    Family.BATCH_PREFILL: Stage.PART,
    Family.FWD_SPLITKV_COMBINE: Stage.COMBINE,
    Family.FWD_APPENDKV: Stage.APPEND,
    Family.BWD_DOT_DO_O: Stage.DOT,
    Family.BWD_DQ_DK_DV: Stage.DQ_DK_DV,
    Family.BWD_CONVERT_DQ: Stage.CONVERT_DQ,
}
"""The stage that kernels of a family serve."""


@functools.lru_cache(maxsize=1 << 10)
def problem_of(p: TimedProblem) -> Problem:
    """The stage, or that of the whole whose kernel decides what the others do, as kernels see it."""
    q, k, v, o, bias, d_o, dq, dk, dv, dbias = (Strides(*p.stride(name)) for name in TENSORS)
    return Problem(
        AttentionOp[f"ATTENTION_{p.main.name}"], p.group, DType(p.dtype), DType(p.dtype_kv), DType(p.dtype_o),
        DType(p.dtype_bias) if p.dtype_bias else None, Mask(p.mask), Bias(p.bias), p.lse, p.sink, p.dropout_p > 0,
        p.random_bytes, p.kv_lengths, QScale(p.qscale), PageTable[p.page_table.upper()], PageLayout(p.page_layout),
        p.dbias, p.deterministic, max(p.num_splits, 1), p.leaves_splits, p.dq_slices, p.batch, p.heads_q, p.heads_kv,
        p.hdim_q, p.hdim_v, p.seqlen_q, p.seqlen_k, p.total_q, p.total_k, *p.window, p.min_seqlen_q, p.pages,
        p.page_size, p.page_table_stride, p.slopes_stride, p.scale, p.soft_cap,
        q, k, v, o, bias, d_o, dq, dk, dv, dbias,
    )  # fmt: skip


def append_of(p: TimedAppend) -> Append:
    """As kernels see it."""
    return Append(
        DType(p.dtype), DType(p.dtype_rotary) if p.dtype_rotary else None, Rope(p.rope), p.heads_q != 0,
        PageTable[p.page_table.upper()], PageLayout(p.page_layout), p.batch, p.heads_q, p.heads_kv, p.hdim_q, p.hdim_v,
        p.seqlen_q, p.seqlen_new, p.capacity, p.pages, p.page_size, p.page_table_stride, p.rotary_dim, p.rotary_places,
        *(Strides(*one) for one in p.strides),
    )  # fmt: skip


def refusal(k: Described, p: Problem, arch: Arch) -> Refusal:
    """Why the kernel does not serve a stage with what was chosen for it."""
    if arch.backend == "cutlass":
        return cuda.check(k.traits, p)
    return cpu.check(k.traits, p) if arch.backend == "cpu" else hip.check(k.traits, p, k.aligned)


def append_refusal(k: Described, p: Append, arch: Arch) -> Refusal:
    """Why the kernel does not serve an append."""
    if arch.backend == "cutlass":
        return cuda.append_check(k.traits, p)
    if arch.backend == "cpu":
        return checks.append_traits_match(k.traits, p)
    return hip.append_check(k.traits, p, k.aligned)
