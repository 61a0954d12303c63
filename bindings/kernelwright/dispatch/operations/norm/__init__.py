"""RMS norm and layer norm: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.norm import words
from kernelwright.dispatch.operations.norm.methods import NormMethods as Methods
from kernelwright.dispatch.operations.norm.plan import NormPlan
from kernelwright.problems.norm.problem import OPS, NormProblem, op_name

__all__ = ["NORM", "Methods", "NormPlan", "NormProblem"]

NORM = [
    register(Operation(op_name(*parts), code, NormProblem, NormPlan, NormProblem.from_native, "norm", words.asked))
    for code, parts in OPS.items()
]
