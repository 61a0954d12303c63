"""What rules read of the C ABI's structs."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen.c_names import c_struct
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.norm.spec import NormOp

_HEADER = "kernelwright/norm.h"


@c_struct("kw_norm_problem", _HEADER, op="base.op")
@dataclass(frozen=True)
class Problem:
    """kw_norm_problem, as far as rules read it."""

    op: NormOp
    dtype_x: DType
    dtype_y: DType
    dtype_w: DType
    weight: bool
    bias: bool
    residual: bool
    rows: int
    columns: int
    stride_x: int
    stride_residual: int
    stride_y: int
    stride_sum: int
    stride_dy: int
    epsilon: float


@c_struct("kw_norm_traits", _HEADER)
@dataclass(frozen=True)
class Traits:
    """kw_norm_traits."""

    dtype_x: DType
    dtype_y: DType
    unroll: int
