"""What rules read of the C ABI's structs."""

from __future__ import annotations

from kernelwright.codegen.c_names import data_class
from kernelwright.problems.norm.description import Problem, Traits

__all__ = ["Problem", "Traits"]

data_class(Problem, Traits)
