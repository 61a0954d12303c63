"""Layouts and leading dimensions of matrices from their strides."""

from __future__ import annotations

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.gemm.operand import Operand


def layouts(name: str, view: Operand, wanted: str | None) -> list[tuple[str, int]]:
    """Layout letters and leading dimensions that address this matrix, row-major first. ArrayError if there are none."""
    (rows, columns), (row_stride, column_stride) = view.shape, view.strides
    possible = []
    for letter, lines, extent, outer, inner in (
        ("r", rows, columns, row_stride, column_stride),
        ("c", columns, rows, column_stride, row_stride),
    ):
        if wanted not in (None, letter):
            continue
        dense = max(extent, 1)
        if rows * columns == 0 or view.batch == 0 or (lines == 1 and (inner == 1 or extent == 1)):
            possible.append((letter, dense))  # with at most one line, the stride is irrelevant
        elif (inner == 1 or extent == 1) and outer >= dense:
            possible.append((letter, outer))
    if not possible:
        raise ArrayError(_why_not(name, view, wanted))
    return possible


def is_addressed_by(view: Operand, letter: str, leading: int) -> bool:
    """Whether this layout and leading dimension reach every element; the stride of an extent of 1 is irrelevant."""
    inner, outer = (1, 0) if letter == "r" else (0, 1)
    return 0 in view.shape or (
        (view.strides[inner] == 1 or view.shape[inner] == 1)
        and (view.strides[outer] == leading or view.shape[outer] == 1)
    )


def _why_not(name: str, view: Operand, wanted: str | None) -> str:
    what = f"{name} of shape {view.shape} has strides {view.strides} (elements)"
    if min(view.strides) < 0:
        return f"{what}; negative strides cannot be addressed, pass a copy"
    if min(view.strides) == 0 or max(view.strides) < min(view.shape):
        return f"{what}; its rows or columns overlap in memory, pass a copy"
    if 1 not in view.strides:
        return f"{what}; one of them must be 1, pass a copy"
    if wanted is not None:
        return f"{what}, which is not {'row' if wanted == 'r' else 'column'}-major as layout says; leave layout out"
    return f"{what}; its rows or columns overlap in memory, pass a copy"


def d_leading(name: str, view: Operand, shape: tuple[int, int], letter: str) -> int:
    """Leading dimension of a D tensor beside a result in the layout ``letter``; 0 for one line shared by all."""
    lines, outer, inner = (0, 0, 1) if letter == "r" else (1, 1, 0)
    if view.shape[inner] != shape[inner]:
        kind = "row" if letter == "r" else "column"
        raise ArrayError(
            f"{name} has one value for each {kind}; allowed beside a {kind}-major result: whole matrices, or one "
            f"{kind} for all"
        )
    one_line = view.shape[lines] == 1 or view.strides[outer] == 0
    if one_line and shape[lines] != 1:
        if view.strides[inner] != 1 and view.shape[inner] > 1:
            raise ArrayError(
                f"{name} has strides {view.strides}; the values of its line must lie together, pass a copy"
            )
        return 0
    possible = [leading for _, leading in layouts(name, view, letter)]
    return possible[0]


def batch_stride_of(view: Operand) -> int:
    """Elements from one matrix of a batch to the next; 0 if all products share the matrix."""
    return 0 if view.batch in (None, 1) else view.batch_stride
