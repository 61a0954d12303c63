# Written by operation_methods_test.py from the registered operations.
from typing import Any, overload

from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.core.plan import OperationPlan
from kernelwright.dispatch.operations.attention.methods import AttentionMethods
from kernelwright.dispatch.operations.attention.plan import AppendPlan, AttentionPlan
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.dispatch.operations.convolution.methods import ConvMethods
from kernelwright.dispatch.operations.convolution.plan import ConvPlan
from kernelwright.dispatch.operations.gemm.methods import GemmMethods
from kernelwright.dispatch.operations.gemm.plan import GroupedPlan, Plan
from kernelwright.dispatch.operations.norm.methods import NormMethods
from kernelwright.dispatch.operations.norm.plan import NormPlan
from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.norm.problem import NormProblem

OPERATIONS: tuple[str, ...]

class OperationMethods(GemmMethods, ConvMethods, AttentionMethods, NormMethods):
    @overload
    def plan(self, problem: AppendProblem) -> AppendPlan: ...
    @overload
    def plan(self, problem: AttentionProblem) -> AttentionPlan: ...
    @overload
    def plan(self, problem: ConvProblem) -> ConvPlan: ...
    @overload
    def plan(self, problem: GemmProblem) -> Plan: ...
    @overload
    def plan(self, problem: GroupedGemmProblem) -> GroupedPlan: ...
    @overload
    def plan(self, problem: NormProblem) -> NormPlan: ...
    @overload
    def plan(self, problem: Problem) -> OperationPlan[Any]: ...
