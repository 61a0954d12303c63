"""GEMM and grouped GEMM: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.dispatch.operations.gemm.plan import GroupedPlan, Plan
from kernelwright.dispatch.operations.gemm.problem import GemmProblem
from kernelwright.dispatch.operations.gemm.structs import OP_GEMM, OP_GROUPED_GEMM

__all__ = ["GEMM", "GROUPED_GEMM", "GemmProblem", "GroupedGemmProblem", "GroupedPlan", "Plan"]

GEMM = register(Operation("gemm", OP_GEMM, GemmProblem, Plan, GemmProblem.from_native))
GROUPED_GEMM = register(
    Operation("grouped gemm", OP_GROUPED_GEMM, GroupedGemmProblem, GroupedPlan, GroupedGemmProblem.from_native)
)
