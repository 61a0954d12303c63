"""GEMM and grouped GEMM: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.gemm import words
from kernelwright.dispatch.operations.gemm.from_arrays import fields_of_arrays
from kernelwright.dispatch.operations.gemm.methods import GemmMethods as Methods
from kernelwright.dispatch.operations.gemm.plan import GroupedPlan, Plan
from kernelwright.problems.gemm.description import GemmOp
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import GemmProblem

__all__ = ["GEMM", "GROUPED_GEMM", "GemmProblem", "GroupedGemmProblem", "GroupedPlan", "Methods", "Plan"]

GemmProblem.read_arrays = fields_of_arrays
GEMM = register(
    Operation("gemm", GemmOp.GEMM.number, GemmProblem, Plan, GemmProblem.from_native, asked=words.asked),
)
GROUPED_GEMM = register(
    Operation(
        *("grouped gemm", GemmOp.GROUPED_GEMM.number, GroupedGemmProblem, GroupedPlan, GroupedGemmProblem.from_native),
        asked=words.asked,
    )
)
