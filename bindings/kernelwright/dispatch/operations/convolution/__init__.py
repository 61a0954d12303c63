"""Grouped convolution: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.convolution import words
from kernelwright.dispatch.operations.convolution.methods import ConvMethods as Methods
from kernelwright.dispatch.operations.convolution.plan import ConvPlan
from kernelwright.problems.convolution.problem import DIRECTIONS, STAGES, ConvProblem

__all__ = ["CONVOLUTION", "ConvPlan", "ConvProblem", "Methods"]

CONVOLUTION = [
    register(
        Operation(
            *(f"convolution, {direction}", code, ConvProblem, ConvPlan, ConvProblem.from_native, "convolution"),
            asked=words.asked,
        )
    )
    for code, direction in [(code, direction) for direction, code in DIRECTIONS.items()] + [*STAGES.items()]
]
