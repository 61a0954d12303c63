"""The spec fields that a GEMM problem requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import GemmProblem

_EPILOGUE = ("num_d", "d_op", "activation")


def asked(problem: GemmProblem | GroupedGemmProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a kernel's spec must have to serve the problem, without those that ``spec`` serves anyway."""
    grouped = isinstance(problem, GroupedGemmProblem)
    fields: dict[str, Any] = {"op": "gemm", "grouped": grouped, "layout": problem.layout}
    fields |= {name: getattr(problem, name) for name in ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")}
    if isinstance(problem, GemmProblem):
        fields |= {"batched": True} if problem.batch > 1 else {}
        fields |= {"preshuffle": bool(problem.b_format)}
        fields |= {"num_d": problem.num_d, "activation": problem.activation}
        if problem.num_d and problem.d_op != spec.get("d_op", "add"):
            fields["d_op"] = problem.d_op
    if spec.get("activation") == "any":
        fields = {name: value for name, value in fields.items() if name not in _EPILOGUE}
    return fields
