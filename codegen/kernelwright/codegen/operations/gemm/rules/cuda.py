"""Which problems a TMA kernel serves, and which one whose threads copy operands."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.widths import INT32_MAX, INT32_MIN, element_bytes, whole
from kernelwright.codegen.operations.gemm.rules.checks import (
    Matrix,
    check_all_leading,
    check_leading,
    matrix_a,
    matrix_b,
    matrix_c,
    matrix_d,
    traits_match,
)
from kernelwright.codegen.operations.gemm.rules.structs import Problem, Traits

HEADER = "launchers/cuda/gemm/conditions.h"
PREFIX = "kw_cuda_gemm"

# TMA addresses rows by multiples of 16 bytes, below 2^40 bytes (CUDA driver API, cuTensorMapEncodeTiled).
ALIGNMENT = 16
STRIDE_LIMIT = 1 << 40


def extent_fits(field: str, extent: int) -> Refusal:
    """Extents are counted in 31 bits."""
    if extent >= 0 and extent <= INT32_MAX:
        return None
    return f"{field} is {extent}; this kernel takes 0 to {INT32_MAX}"


def lines_fit(x: Matrix) -> Refusal:
    """Lines lie at multiples of 16 bytes."""
    size = element_bytes(x.dtype)
    return (
        check_leading(x)
        or (f"{x.ld_name} is {x.ld}; TMA needs strides below 2^40 bytes" if x.ld >= STRIDE_LIMIT // size else None)
        or (
            f"{x.ld_name} is {x.ld}; TMA needs multiples of 16 bytes, that is of {ALIGNMENT // size} {x.dtype} elements"
            if x.ld * size % ALIGNMENT != 0
            else None
        )
    )


def batch_stride_fits(field: str, stride: int, dtype: DType) -> Refusal:
    """Matrices of a batch begin at multiples of 16 bytes."""
    size = element_bytes(dtype)
    if stride >= 0 and stride < STRIDE_LIMIT // size and stride * size % ALIGNMENT == 0:
        return None
    return (
        f"{field} is {stride}; TMA needs multiples of 16 bytes, that is of {ALIGNMENT // size} {dtype} elements,"
        " from 0 to 2^40 bytes"
    )


def stored_row_fits(n: int, dtype: DType) -> Refusal:
    """TMA stores whole 16 bytes: at a ragged n it writes zeros behind the row (seen on H200). Reads are cut exactly."""
    step = ALIGNMENT // element_bytes(dtype)
    if n % step == 0:
        return None
    return f"n is {n}; TMA stores rows of C in 16 bytes, that is in {step} {dtype} elements"


def scalar_fits(field: str, value: float, dtype: DType) -> Refusal:
    """Integers are scaled by integers."""
    if dtype != DType.INT32 or (whole(value) and value >= INT32_MIN and value <= INT32_MAX):
        return None
    return f"{field} is {value:g}; an int32 result takes whole 32-bit factors only"


def k_fits(p: Problem) -> Refusal:
    """Without a K extent there is nothing but C."""
    if p.k > 0:
        return None
    if p.num_d > 0 or p.activation != Activation.NONE:
        return "k is 0; a kernel with D tensors or an activation needs a K extent"
    if p.beta == 0.0 or p.beta == 1.0:
        return None
    return f"k is 0 and beta is {p.beta:g}; without a K extent this kernel serves beta 0 and 1"


def products_apart(p: Problem) -> Refusal:
    """C is written, so its products lie apart."""
    matrix = (p.m - 1) * p.ldc + p.n
    row = (p.batch - 1) * p.stride_c + p.n
    if p.stride_c >= matrix or p.ldc >= row:
        return None
    return f"stride_c is {p.stride_c}: products of {p.m} x {p.n} with ldc {p.ldc} would overlap"


def batches_fit(p: Problem) -> Refusal:
    """A stride of 0 shares A or B among all products."""
    if p.batch == 1:
        return None
    return (
        extent_fits("batch", p.batch)
        or batch_stride_fits("stride_a", p.stride_a, p.dtype_a)
        or batch_stride_fits("stride_b", p.stride_b, p.dtype_b)
        or batch_stride_fits("stride_c", p.stride_c, p.dtype_c)
        or products_apart(p)
    )


def tensor_fits(p: Problem, index: int) -> Refusal:
    """A D tensor; one line for all has no leading dimension."""
    return (lines_fit(matrix_d(p, index)) if p.ld_multi_d[index] != 0 else None) or batch_stride_fits(
        "stride_multi_d", p.stride_multi_d[index], p.dtype_c
    )


def tensors_fit(p: Problem) -> Refusal:
    """All D tensors."""
    for i in range(p.num_d):
        refused = tensor_fits(p, i)
        if refused:
            return refused
    return None


def operands_fit(p: Problem) -> Refusal:
    """Without a K extent neither A nor B is read."""
    return (
        k_fits(p)
        or stored_row_fits(p.n, p.dtype_c)
        or (lines_fit(matrix_a(p)) if p.k > 0 else None)
        or (lines_fit(matrix_b(p)) if p.k > 0 else None)
        or lines_fit(matrix_c(p))
        or batches_fit(p)
        or tensors_fit(p)
    )


def sizes_fit(p: Problem) -> Refusal:
    """All but what traits say."""
    empty = p.m == 0 or p.n == 0
    return (
        extent_fits("m", p.m)
        or extent_fits("n", p.n)
        or extent_fits("k", p.k)
        or scalar_fits("alpha", p.alpha, p.dtype_acc)
        or scalar_fits("beta", p.beta, p.dtype_acc)
        or (operands_fit(p) if not empty else None)
    )


def check(t: Traits, p: Problem) -> Refusal:
    """What is checked of a GEMM but the struct itself."""
    return traits_match(t, p) or sizes_fit(p)


def stride_fits(field: str, stride: int) -> Refusal:
    """Products begin anywhere, not before the first one."""
    if stride >= 0 and stride < STRIDE_LIMIT:
        return None
    return f"{field} is {stride}; this kernel takes 0 to {STRIDE_LIMIT - 1}"


def copied_strides_fit(p: Problem) -> Refusal:
    """A stride of 0 shares A, B or a D tensor among all products."""
    if p.batch == 1:
        return None
    for i in range(p.num_d):
        refused = stride_fits("stride_multi_d", p.stride_multi_d[i])
        if refused:
            return refused
    return (
        extent_fits("batch", p.batch)
        or stride_fits("stride_a", p.stride_a)
        or stride_fits("stride_b", p.stride_b)
        or stride_fits("stride_c", p.stride_c)
        or products_apart(p)
    )


def copied_lines_fit(p: Problem) -> Refusal:
    """Lines of any length at any place, as long as addresses are numbers."""
    for i in range(p.num_d):
        refused = stride_fits("ld_multi_d", p.ld_multi_d[i])
        if refused:
            return refused
    return (
        stride_fits("lda", p.lda)
        or stride_fits("ldb", p.ldb)
        or stride_fits("ldc", p.ldc)
        or check_all_leading(p)
        or copied_strides_fit(p)
    )


def check_copied(t: Traits, p: Problem) -> Refusal:
    """What is checked of a GEMM whose operands threads copy, but the struct itself."""
    empty = p.m == 0 or p.n == 0
    return (
        traits_match(t, p)
        or extent_fits("m", p.m)
        or extent_fits("n", p.n)
        or extent_fits("k", p.k)
        or (copied_lines_fit(p) if not empty else None)
    )
