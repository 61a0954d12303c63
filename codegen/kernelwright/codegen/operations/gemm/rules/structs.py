"""What rules read of the C ABI's structs."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen.c_names import c_struct
from kernelwright.codegen.dtypes import DType, MatrixOrder
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.operations.gemm.spec import DOp

_HEADER = "kernelwright/gemm.h"


@c_struct("kw_gemm_problem", _HEADER)
@dataclass(frozen=True)
class Problem:
    """kw_gemm_problem."""

    dtype_a: DType
    dtype_b: DType
    dtype_c: DType
    dtype_acc: DType
    layout_a: MatrixOrder
    layout_b: MatrixOrder
    layout_c: MatrixOrder
    split_k: int
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    alpha: float
    beta: float
    batch: int
    stride_a: int
    stride_b: int
    stride_c: int
    num_d: int
    d_op: DOp
    activation: Activation
    ld_multi_d: tuple[int, ...]
    stride_multi_d: tuple[int, ...]
    b_format: int


@c_struct("kw_gemm_traits", _HEADER)
@dataclass(frozen=True)
class Traits:
    """What rules read of kw_gemm_traits."""

    dtype_a: DType
    dtype_b: DType
    dtype_c: DType
    dtype_acc: DType
    layout_a: MatrixOrder
    layout_b: MatrixOrder
    layout_c: MatrixOrder
    max_split_k: int
    num_d: int
    d_op: DOp
    activation: Activation
    batched: bool
    b_format: int
