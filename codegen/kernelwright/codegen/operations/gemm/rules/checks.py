"""Which problems a kernel may serve as far as its traits tell, and the matrices of a problem."""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.dtypes import DType, MatrixOrder
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.refusals import Invalid, Refusal
from kernelwright.codegen.formulas.shared import dtype_matches
from kernelwright.codegen.operations.gemm.rules.structs import Problem, Traits

HEADER = "kernelwright/gemm/checks.h"
PREFIX = "kw_gemm"


def dtypes_match(t: Traits, p: Problem) -> Refusal:
    """The kernel is built for these types."""
    return (
        dtype_matches("dtype_a", p.dtype_a, t.dtype_a)
        or dtype_matches("dtype_b", p.dtype_b, t.dtype_b)
        or dtype_matches("dtype_c", p.dtype_c, t.dtype_c)
        or dtype_matches("dtype_acc", p.dtype_acc, t.dtype_acc)
    )


def layout_matches(name: str, asked: MatrixOrder, built: MatrixOrder) -> Refusal:
    """The kernel is built for another storage order of the matrix; name is that of the problem's field."""
    if asked == built:
        return None
    return f"{name} is {asked}, this kernel serves {built}"


def layouts_match(t: Traits, p: Problem) -> Refusal:
    """The kernel is built for these storage orders."""
    return (
        layout_matches("layout_a", p.layout_a, t.layout_a)
        or layout_matches("layout_b", p.layout_b, t.layout_b)
        or layout_matches("layout_c", p.layout_c, t.layout_c)
    )


def variant_matches(t: Traits, p: Problem) -> Refusal:
    """Batch, D tensors, activation and the order of B are what the kernel is built for."""
    if p.batch < 1 or (p.batch > 1 and not t.batched):
        return f"batch is {p.batch}, this kernel serves 1{' or more' if t.batched else ''}"
    any_epilogue = t.activation == Activation.ANY
    if any_epilogue and p.num_d > t.num_d:
        return f"the problem has {p.num_d} D tensors, this kernel takes at most {t.num_d}"
    if not any_epilogue and p.num_d != t.num_d:
        return f"the problem has {p.num_d} D tensors, this kernel takes {t.num_d}"
    if not any_epilogue and p.num_d != 0 and p.d_op != t.d_op:
        return f"d_op is {p.d_op}, this kernel does {t.d_op}"
    if not any_epilogue and p.activation != t.activation:
        return f"activation is {p.activation}, this kernel does {t.activation}"
    if p.b_format == t.b_format:
        return None
    if p.b_format == 0:
        return "B is not shuffled, and this kernel reads it in its own order: shuffle_b"
    if t.b_format == 0:
        return "B is shuffled, and this kernel reads it as it is"
    return "B is shuffled for another kernel: shuffle it for this one"


def split_k_matches(t: Traits, p: Problem) -> Refusal:
    """The kernel sums K in so many slices. A split_k of 0 is the dispatcher's to choose."""
    if p.split_k >= 1 and p.split_k <= t.max_split_k:
        return None
    if t.max_split_k > 1:
        return f"split_k is {p.split_k}, this kernel serves 1 to {t.max_split_k}"
    return f"split_k is {p.split_k}, this kernel serves 1"


def traits_match(t: Traits, p: Problem) -> Refusal:
    """All of the above: what a backend checks of a single problem before its own conditions."""
    return dtypes_match(t, p) or layouts_match(t, p) or variant_matches(t, p) or split_k_matches(t, p)


class Matrix(NamedTuple):
    """A matrix of a problem. Its lines are rows (row-major) or columns (column-major), ld elements apart."""

    name: str  # "A"
    ld_name: str  # "lda"
    row_extent: str
    column_extent: str
    layout: MatrixOrder
    dtype: DType
    ld: int
    rows: int
    columns: int


def line(x: Matrix) -> int:
    """Elements of one line."""
    return x.columns if x.layout == MatrixOrder.ROW_MAJOR else x.rows


def line_name(x: Matrix) -> str:
    """The name of that extent."""
    return x.column_extent if x.layout == MatrixOrder.ROW_MAJOR else x.row_extent


def lines(x: Matrix) -> int:
    """How many lines there are."""
    return x.rows if x.layout == MatrixOrder.ROW_MAJOR else x.columns


def matrix_a(p: Problem) -> Matrix:
    """A."""
    return Matrix("A", "lda", "m", "k", p.layout_a, p.dtype_a, p.lda, p.m, p.k)


def matrix_b(p: Problem) -> Matrix:
    """B."""
    return Matrix("B", "ldb", "k", "n", p.layout_b, p.dtype_b, p.ldb, p.k, p.n)


def matrix_c(p: Problem) -> Matrix:
    """C."""
    return Matrix("C", "ldc", "m", "n", p.layout_c, p.dtype_c, p.ldc, p.m, p.n)


def matrix_d(p: Problem, index: int) -> Matrix:
    """The D tensor `index`, below KW_MAX_D. One line for all (ld 0) is a matrix of one line."""
    name = "D0" if index == 0 else "D1" if index == 1 else "D2" if index == 2 else "D3"
    first = "ld_multi_d[0]" if index == 0 else "ld_multi_d[1]"
    ld_name = first if index < 2 else "ld_multi_d[2]" if index == 2 else "ld_multi_d[3]"
    by_rows = p.layout_c == MatrixOrder.ROW_MAJOR
    shared = p.ld_multi_d[index] == 0
    ld = max(p.n if by_rows else p.m, 1) if shared else p.ld_multi_d[index]
    rows = 1 if shared and by_rows else p.m
    columns = 1 if shared and not by_rows else p.n
    return Matrix(name, ld_name, "m", "n", p.layout_c, p.dtype_c, ld, rows, columns)


def check_leading(x: Matrix) -> Refusal:
    """Lines do not overlap, and the bounds check of the last one hides no part of the others."""
    if x.ld >= line(x):
        return None
    kind = "row" if x.layout == MatrixOrder.ROW_MAJOR else "column"
    return Invalid(f"{x.ld_name} is {x.ld}, below {line_name(x)}, the {line(x)} elements of a {kind} of {x.name}")


def check_d_leading(p: Problem) -> Refusal:
    """The same of the D tensors."""
    for i in range(min(p.num_d, 4)):
        refused = check_leading(matrix_d(p, i))
        if refused:
            return refused
    return None


def check_all_leading(p: Problem) -> Refusal:
    """The same of every matrix of a problem; B is left out where it is shuffled."""
    return (
        check_leading(matrix_a(p))
        or (check_leading(matrix_b(p)) if p.b_format == 0 else None)
        or check_leading(matrix_c(p))
        or check_d_leading(p)
    )
