"""What the CPU's backward pass does not do."""

from __future__ import annotations

from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.operations.attention.kinds import AttentionOp
from kernelwright.codegen.operations.attention.rules.checks import traits_match
from kernelwright.codegen.operations.attention.rules.structs import Problem, Traits

HEADER = "launchers/cpu/attention/conditions.h"
PREFIX = "kw_cpu_attention"


def check(t: Traits, p: Problem) -> Refusal:
    """What traits say, and a gradient of the bias for each request."""
    shared = p.dbias and p.batch > 1 and p.dbias_strides.request == 0 and not p.group
    return traits_match(t, p) or (
        f"dbias is one for all {p.batch} requests, this kernel writes one for each; add them up afterwards"
        if p.op == AttentionOp.ATTENTION_DQ_DK_DV and shared
        else None
    )
