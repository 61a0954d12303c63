"""Grouped convolution: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.convolution.plan import ConvPlan
from kernelwright.dispatch.operations.convolution.problem import ConvProblem
from kernelwright.dispatch.operations.convolution.structs import DIRECTIONS, STAGES

__all__ = ["CONVOLUTION", "ConvPlan", "ConvProblem"]

CONVOLUTION = [
    register(Operation(f"convolution, {direction}", code, ConvProblem, ConvPlan, ConvProblem.from_native))
    for code, direction in [(code, direction) for direction, code in DIRECTIONS.items()] + [*STAGES.items()]
]
