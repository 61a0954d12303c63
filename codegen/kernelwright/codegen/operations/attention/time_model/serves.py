"""Whether an attention kernel serves a problem or one of its stages: its backend's rules, on its C ABI traits."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import record_of
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.operations.attention.kinds import AttentionOp, Family
from kernelwright.codegen.operations.attention.rules import checks, cpu, cuda, hip
from kernelwright.codegen.operations.attention.rules.structs import Append, Problem
from kernelwright.codegen.operations.attention.time_model.problem import Stage, TimedProblem
from kernelwright.codegen.operations.attention.time_model.traits import Described
from kernelwright.problems.attention.append_problem import AppendProblem

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
"""The stage that kernels of each family serve."""


@functools.lru_cache(maxsize=1 << 10)
def problem_of(p: TimedProblem) -> Problem:
    """The problem of a stage as kernels see it; for a whole problem, its main stage."""
    chosen = {"num_splits": max(p.num_splits, 1), "leaves_splits": p.leaves_splits, "dq_slices": p.dq_slices}
    return record_of(Problem, p.whole.in_c() | chosen | {"op": AttentionOp[f"ATTENTION_{p.main.name}"]})


def append_of(p: AppendProblem) -> Append:
    """The append as kernels see it."""
    return record_of(Append, p.in_c())


def refusal(k: Described, p: Problem, arch: Arch) -> Refusal:
    """Return why the kernel does not serve a stage with the choices made for it."""
    if arch.backend == "cutlass":
        return cuda.check(k.traits, p)
    return cpu.check(k.traits, p) if arch.backend == "cpu" else hip.check(k.traits, p, k.aligned)


def append_refusal(k: Described, p: Append, arch: Arch) -> Refusal:
    """Return why the kernel does not serve an append."""
    if arch.backend == "cutlass":
        return cuda.append_check(k.traits, p)
    if arch.backend == "cpu":
        return checks.append_traits_match(k.traits, p)
    return hip.append_check(k.traits, p, k.aligned)
