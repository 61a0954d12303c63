"""A GEMM problem as programs pose it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.violations import SpecError
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.reading import read_problem

TimedProblem = GemmProblem


def read_fields(raw: Mapping[str, Any]) -> TimedProblem:
    """The problem of a trace's entry. SpecError for unknown fields and values that make no problem."""
    try:
        return read_problem(GemmProblem, raw, "GEMM problem")
    except ProblemError as error:
        raise SpecError(str(error)) from None
