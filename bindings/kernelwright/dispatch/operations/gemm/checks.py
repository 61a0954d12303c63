"""Check operands against the problem of a plan."""

from __future__ import annotations

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.gemm.from_arrays import check_d
from kernelwright.dispatch.operations.gemm.layouts import batch_stride_of, d_leading, is_addressed_by
from kernelwright.dispatch.operations.gemm.operand import Operand
from kernelwright.problems.gemm.problem import GemmProblem


def check_operand(shown: str, name: str, view: Operand, problem: GemmProblem, memory: str) -> None:
    """Raise ArrayError unless a plan for ``problem`` takes ``view`` as its operand ``name``: a, b, c or out."""
    p = problem
    rows, columns, dtype, letter, leading, stride = {
        "a": (p.m, p.k, p.dtype_a, p.layout[0], p.lda, p.stride_a),
        "b": (p.k, p.n, p.dtype_b, p.layout[1], p.ldb, p.stride_b),
    }.get(name, (p.m, p.n, p.dtype_c, p.layout[2], p.ldc, p.stride_c))
    if view.shape != (rows, columns) or view.dtype != dtype:
        raise ArrayError(f"{shown} is {view.shown_shape} {view.dtype}; allowed for this plan: {rows}x{columns} {dtype}")
    shared = view.batch in (None, 1) and stride == 0 and name in ("a", "b")
    if (view.batch or 1) != p.batch and not shared:
        raise ArrayError(f"{shown} is a batch of {view.batch or 1}; allowed for this plan: {p.batch}")
    if p.batch > 1 and not shared and view.batch_stride != stride:
        raise ArrayError(f"{shown} has a batch stride of {view.batch_stride} elements; allowed for this plan: {stride}")
    if view.device != memory:
        raise ArrayError(f"{shown} is on {view.device}; allowed for this plan: {memory}")
    if name == "b" and view.b_format != p.b_format:
        kinds = ["shuffled for another kernel" if f else "not shuffled" for f in (view.b_format, p.b_format)]
        wanted = f"one that shuffle_b made in b_format {p.b_format}" if p.b_format else "a matrix as it is"
        raise ArrayError(f"{shown} is {kinds[0]}; allowed for this plan: {wanted}")
    if not is_addressed_by(view, letter, leading or 1):
        kind = "row" if letter == "r" else "column"
        raise ArrayError(
            f"{shown} has strides {view.strides}; allowed for this plan: {kind}-major, leading dimension {leading}"
        )
    if name == "out" and view.readonly:
        raise ArrayError(f"{shown} cannot be written to; pass a writable array")


def check_d_operand(name: str, number: int, view: Operand, problem: GemmProblem, memory: str) -> None:
    """Raise ArrayError unless a plan for ``problem`` takes ``view`` as its D tensor ``number``."""
    shape = problem.m, problem.n
    check_d(name, view, shape, problem.batch, problem.dtype_c)
    if view.device != memory:
        raise ArrayError(f"{name} is on {view.device}; allowed for this plan: {memory}")
    leading, stride = d_leading(name, view, shape, problem.layout[2]), batch_stride_of(view)
    assert problem.ld_multi_d is not None and problem.stride_multi_d is not None
    wanted = problem.ld_multi_d[number], problem.stride_multi_d[number]
    if (leading, stride) != wanted:
        raise ArrayError(
            f"{name} has leading dimension {leading} and batch stride {stride} (0 where it repeats); "
            f"allowed for this plan: {wanted[0]} and {wanted[1]}"
        )
