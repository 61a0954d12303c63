"""Attention problems as programs state them, and the problems of their stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kernelwright.codegen.inputs import recorded_problem
from kernelwright.problems.attention.append_problem import AppendProblem
from kernelwright.problems.attention.problem import AttentionProblem


class Stage(StrEnum):
    """Stages that kernels serve: operations of the C ABI."""

    PART = "part"
    COMBINE = "combine"
    APPEND = "append"
    DOT = "dot"
    DQ_DK_DV = "dq_dk_dv"
    CONVERT_DQ = "convert_dq"


@dataclass(frozen=True)
class TimedProblem:
    """A problem, or one of its stages with the choices made for it."""

    whole: AttentionProblem
    num_splits: int
    stage: Stage | None = None
    leaves_splits: bool = False
    dq_slices: int = 0

    @property
    def main(self) -> Stage:
        """The stage itself, or for a whole problem the stage whose kernel decides what the other stages do."""
        return self.stage or (Stage.PART if self.whole.direction == "forward" else Stage.DQ_DK_DV)


def read_fields(raw: Mapping[str, Any]) -> TimedProblem:
    """Return the problem of a trace entry. SpecError for unknown fields and illegal values."""
    whole = recorded_problem(AttentionProblem, raw, "problem of attention")
    assert whole.num_splits is not None
    return TimedProblem(whole, whole.num_splits)


def read_append(raw: Mapping[str, Any]) -> AppendProblem:
    """The same for an append."""
    return recorded_problem(AppendProblem, raw, "problem of appending keys")
