"""Which problems a kernel may serve as far as its traits tell; what is wrong with a problem whatever the kernel."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Invalid, Refusal
from kernelwright.codegen.formulas.shared import dtype_matches
from kernelwright.codegen.formulas.widths import dtype_name, finite_fp32
from kernelwright.codegen.operations.norm.rules.structs import Problem, Traits
from kernelwright.problems.norm.description import NormOp

HEADER = "kernelwright/norm/checks.h"
PREFIX = "kw_norm"
MAX_ELEMENTS = 144115188075855872


def is_backward(p: Problem) -> bool:
    """Whether gradients are asked for."""
    return p.op == NormOp.RMS_NORM_BACKWARD or p.op == NormOp.LAYER_NORM_BACKWARD


def is_layer(p: Problem) -> bool:
    """Whether the mean is taken off."""
    return p.op == NormOp.LAYER_NORM or p.op == NormOp.LAYER_NORM_BACKWARD


def is_quantised(p: Problem) -> bool:
    """Whether y has a scale for each row."""
    return p.dtype_y == DType.INT8 or p.dtype_y == DType.FP8


def writes_sum(p: Problem) -> bool:
    """Whether a residual is added and the sum written."""
    return p.residual and not is_backward(p)


def types_are_legal(p: Problem) -> Refusal:
    """The types that norms are defined for."""
    if p.dtype_x != DType.FP32 and p.dtype_x != DType.FP16 and p.dtype_x != DType.BF16:
        return Invalid(f"dtype_x is {dtype_name(p.dtype_x)}; allowed: fp32, fp16, bf16")
    if p.dtype_w != p.dtype_x and p.dtype_w != DType.FP32:
        return Invalid(f"dtype_w is {dtype_name(p.dtype_w)}; allowed: dtype_x or fp32")
    if p.dtype_y != p.dtype_x and (is_backward(p) or not is_quantised(p)):
        return Invalid(f"dtype_y is {dtype_name(p.dtype_y)}; allowed: dtype_x; of forward int8 and fp8 too")
    return None


def rows_are_legal(name: str, p: Problem, stride: int, used: bool, written: bool) -> Refusal:
    """The distance of rows of an operand; name is that of the field."""
    if not used:
        if stride != 0:
            return Invalid(f"{name} is {stride}; allowed for an operand that the problem lacks: 0")
        return None
    if written and p.rows > 1 and stride < p.columns:
        return Invalid(f"{name} is {stride}, so rows would overlap; allowed: {p.columns} or more")
    if max(p.rows - 1, 0) * stride + p.columns > MAX_ELEMENTS:
        return Invalid(f"{name} is {stride}; allowed: rows that span at most {MAX_ELEMENTS} elements")
    return None


def is_legal(p: Problem) -> Refusal:
    """What the ranges of fields do not say."""
    if p.bias and not is_layer(p):
        return Invalid("bias is 1; allowed for rms norm: 0")
    if not finite_fp32(p.epsilon) or p.epsilon < 0:
        return Invalid("epsilon is negative or not finite; allowed: a finite number, 0 or more")
    return (
        types_are_legal(p)
        or rows_are_legal("stride_x", p, p.stride_x, True, False)
        or rows_are_legal("stride_residual", p, p.stride_residual, p.residual, False)
        or rows_are_legal("stride_y", p, p.stride_y, True, True)
        or rows_are_legal("stride_sum", p, p.stride_sum, writes_sum(p), True)
        or rows_are_legal("stride_dy", p, p.stride_dy, is_backward(p), False)
    )


def traits_match(t: Traits, p: Problem) -> Refusal:
    """The kernel is built for these types."""
    return dtype_matches("dtype_x", p.dtype_x, t.dtype_x) or dtype_matches("dtype_y", p.dtype_y, t.dtype_y)
