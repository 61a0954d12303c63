"""Human-readable descriptions of GEMM kernels, and the spec fields that a problem requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.dispatch.core.kernel import extents
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import GemmProblem

_EPILOGUE = ("num_d", "d_op", "activation")


def short(spec: Mapping[str, Any]) -> str:
    """Such as ``bf16 rcr 128x128x32 +D gelu``: operands, layouts of A, B and C, tile, and special features."""
    a, b, c = spec["dtype_a"], spec["dtype_b"], spec["dtype_c"]
    words = [f"{a if a == b else f'{a}*{b}'}{'' if c == a else f'->{c}'}", spec["layout"], extents(spec["tile"])]
    words += [spec["pipeline"]] if spec.get("pipeline", "packed") != "packed" else []
    if spec.get("activation") == "any":
        return " ".join([*words, "any epilogue", *_flags(spec)])
    number = spec.get("num_d", 0)
    if number:
        words.append(f"{'*' if spec.get('d_op') == 'multiply' else '+'}{number if number > 1 else ''}D")
    words += [spec["activation"]] if spec.get("activation", "none") != "none" else []
    return " ".join([*words, *_flags(spec)])


def _flags(spec: Mapping[str, Any]) -> list[str]:
    streamed = [f"stream_k {spec['stream_k']}"] if spec.get("stream_k", "none") != "none" else []
    return [*streamed, *(one for one in ("batched", "grouped", "split_k", "preshuffle", "persistent") if spec.get(one))]


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
