"""A convolution as programs pose it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.violations import SpecError
from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.reading import read_problem


def read_fields(raw: Mapping[str, Any]) -> ConvProblem:
    """The problem of a trace's entry. SpecError for unknown fields and values that make no problem."""
    try:
        return read_problem(ConvProblem, raw, "convolution")
    except ProblemError as error:
        raise SpecError(str(error)) from None
