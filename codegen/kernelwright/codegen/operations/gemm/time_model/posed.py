"""A GEMM problem as programs pose it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.violations import SpecError
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.reading import read_problem

Posed = GemmProblem


def read_posed(problem: Mapping[str, Any]) -> Posed:
    """The problem of a trace's entry. SpecError for unknown fields and values that make no problem."""
    try:
        return read_problem(GemmProblem, problem, "GEMM problem")
    except ProblemError as error:
        raise SpecError(str(error)) from None
