"""Fused attention: problems, plans, and calls with arrays."""

from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.operations.attention import words
from kernelwright.dispatch.operations.attention.methods import AttentionMethods as Methods
from kernelwright.dispatch.operations.attention.plan import AppendPlan, AttentionPlan
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.problems.attention.structs import APPEND, DIRECTIONS, STAGES

__all__ = ["ATTENTION", "AppendPlan", "AppendProblem", "AttentionPlan", "AttentionProblem", "Methods"]

ATTENTION = [
    *[
        register(
            Operation(
                *(f"attention, {kind}", code, AttentionProblem, AttentionPlan, AttentionProblem.from_native),
                recorded="attention",
                asked=words.asked,
            )
        )
        for code, kind in [(code, kind) for kind, code in DIRECTIONS.items()] + [*STAGES.items()]
    ],
    register(
        Operation(
            *("attention append", APPEND, AppendProblem, AppendPlan, AppendProblem.from_native),
            asked=words.asked_of_append,
        )
    ),
]
