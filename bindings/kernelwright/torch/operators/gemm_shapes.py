"""Convert operands of any rank to the matrices and batches that kernels multiply.

``kernelwright::gemm`` takes matrices, and batches of three dimensions. Here vectors become matrices of one row or
column, batches are broadcast and folded into one dimension, and rows of a batch that shares B become the rows of one
product, as in ``torch.matmul``. Views are used if possible; if ``torch.matmul`` copies, so does this.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch import inputs

Shape = tuple[Any, ...]  # extents may be symbols


class Product(NamedTuple):
    """Operands as the operator takes them, and the shape of the user's result.

    :ivar shape: None if it equals that of the operator's result.
    """

    a: torch.Tensor
    b: torch.Tensor
    ds: list[torch.Tensor]
    shape: Shape | None


def as_product(a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], names: Sequence[str]) -> Product:
    """The product ``torch.matmul(a, b)`` with D tensors that are broadcast to its shape.

    :param names: names of a, b and the D tensors in errors.
    :raises ArrayError: for operands that do not fit together.
    """
    _check(a, b, names)
    if a.dim() == b.dim() == 2 and all(d.dim() == 1 and d.shape[0] == b.shape[1] for d in ds):
        return Product(a, b, list(ds), None)  # a layer, the most common case
    column, row = b.dim() == 1, a.dim() == 1
    matrix_a, matrix_b = (a[None] if row else a), (b[:, None] if column else b)
    batch = _batch(a, b, matrix_a.shape[:-2], matrix_b.shape[:-2], names)
    m, n = matrix_a.shape[-2], matrix_b.shape[-1]
    shape = (*batch, *(() if row else (m,)), *(() if column else (n,)))
    ds = [_like_result(d, shape, row, column, name) for d, name in zip(ds, names[2:], strict=True)]
    whole = (*batch, m, n)
    if not batch:
        product = Product(matrix_a, matrix_b, [_lines(d, whole) for d in ds], shape)
    elif _alone(matrix_b):
        matrix_b = matrix_b.reshape(matrix_b.shape[-2:])
        rows = _flat(names[0], matrix_a.expand(*batch, *matrix_a.shape[-2:]), 0, -1)
        product = Product(rows, matrix_b, [_rows(name, d, whole) for name, d in zip(names[2:], ds, strict=True)], shape)
    else:
        matrix_a, matrix_b, *ds = (
            _batched(name, one, batch) for name, one in zip(names, (matrix_a, matrix_b, *ds), strict=True)
        )
        product = Product(matrix_a, matrix_b, [_lines(d, (*d.shape[:-2], m, n)) for d in ds], shape)
    same = product.a.dim() <= 3 and len(shape) == max(product.a.dim(), product.b.dim())
    return product._replace(shape=None) if same and not row and not column else product


def result_shape(a: torch.Tensor, b: torch.Tensor) -> Shape:
    """Shape of the operator's result; extents may be symbols. The dispatcher checks whether shapes fit.

    Raises ArrayError for operands of other than two or three dimensions.
    """
    for name, operand in (("a", a), ("b", b)):
        if operand.dim() not in (2, 3):
            raise ArrayError(
                f"{name} has shape {tuple(operand.shape)}; allowed: two dimensions, or three for a batch of matrices"
            )
    matrix = (a.shape[-2], b.shape[-1])
    if a.dim() == b.dim() == 2:
        return matrix
    if a.dim() != b.dim():
        return ((a if a.dim() == 3 else b).shape[0], *matrix)
    return (a.shape[0] if b.shape[0] == 1 else b.shape[0], *matrix)


def _check(a: torch.Tensor, b: torch.Tensor, names: Sequence[str]) -> None:
    for name, operand in ((names[0], a), (names[1], b)):
        if operand.dim() == 0:
            raise ArrayError(f"{name} has shape (); allowed: one dimension or more; multiply by a number with torch")
    k, k_of_b = a.shape[-1], b.shape[-2] if b.dim() > 1 else b.shape[0]
    if k != k_of_b:
        role = "" if names[1] == "b" else " as B"  # a weight is transposed
        shapes = f"{names[0]} is {_shown(a.shape)} and {names[1]} {_shown(b.shape)}{role}"
        raise ArrayError(f"{shapes}: k is {k} and {k_of_b}; they must be equal; transpose one, or pass other operands")


def _batch(a: torch.Tensor, b: torch.Tensor, batch_a: Shape, batch_b: Shape, names: Sequence[str]) -> Shape:
    batch = []
    for at in range(-max(len(batch_a), len(batch_b)), 0):
        left, right = (one[at] if -at <= len(one) else 1 for one in (batch_a, batch_b))
        if left != right and left != 1 and right != 1:
            raise ArrayError(
                f"batches of {names[0]} {_shown(a.shape)} and {names[1]} {_shown(b.shape)} differ: {left} and {right}; "
                "allowed: equal extents, or 1 for one that all share; expand one of them"
            )
        batch.append(right if left == 1 else left)
    return tuple(batch)


def _like_result(d: torch.Tensor, shape: Shape, row: bool, column: bool, name: str) -> torch.Tensor:
    """A D tensor beside matrices: restores a dimension m or n that users omitted, and expands the last one to n."""
    given = tuple(d.shape)
    if len(given) > len(shape) or any(g not in (1, s) for g, s in zip(given[::-1], shape[::-1], strict=False)):
        raise ArrayError(f"{name} is {_shown(given)}; allowed: {_shown(shape)}, or extents that broadcast to it")
    if column:
        d = d.unsqueeze(-1)
    if row and d.dim() > 1:
        d = d.unsqueeze(-2)
    elif d.dim() == 0:
        d = d[None]
    n = 1 if column else shape[-1]
    return d if d.shape[-1] == n else d.expand(*d.shape[:-1], n)


def _alone(matrix: torch.Tensor) -> bool:
    return all(extent == 1 for extent in matrix.shape[:-2])


def _lines(d: torch.Tensor, whole: Shape) -> torch.Tensor:
    """A D tensor as kernels take it: whole rows, or one row for all."""
    if d.dim() == 1 or d.shape[-2] == whole[-2] or d.shape[-2] == 1:
        return d
    return d.expand(whole)


def _rows(name: str, d: torch.Tensor, whole: Shape) -> torch.Tensor:
    """A D tensor beside the rows of a whole batch: one row for all, or each."""
    if all(extent == 1 for extent in d.shape[:-1]):
        return d.reshape(d.shape[-1])
    return _flat(name, d.expand(whole), 0, -1)


def _batched(name: str, operand: torch.Tensor, batch: Shape) -> torch.Tensor:
    """An operand of a batch: three dimensions, or fewer where all products share it."""
    if operand.dim() < 3 or _alone(operand):
        return operand.reshape(operand.shape[-2:]) if operand.dim() > 2 else operand
    return _flat(name, operand.expand(*batch, *operand.shape[-2:]), 0, -2)


def _flat(name: str, operand: torch.Tensor, first: int, end: int) -> torch.Tensor:
    """Merge the dimensions from ``first`` to before ``end`` into one: a view, else a copy."""
    extents = operand.shape[first:end]
    if len(extents) == 1:
        return operand
    size = 1
    for extent in extents:
        size = size * extent
    shape = (*operand.shape[:first], size, *operand.shape[end:])
    if not _viewable(operand, first, end):
        inputs.tell_copy(name, operand, "its leading dimensions do not lie one behind the other")
    return operand.reshape(shape)


def _viewable(operand: torch.Tensor, first: int, end: int) -> bool:
    if operand.numel() == 0:
        return True
    kept = [(e, s) for e, s in zip(operand.shape[first:end], operand.stride()[first:end], strict=True) if e != 1]
    return all(stride == inner * count for (_, stride), (count, inner) in itertools.pairwise(kept))


def addressable(name: str, operand: torch.Tensor, row_major: bool = False) -> torch.Tensor:
    """The matrix or batch itself if kernels can address it, else a copy, as in ``torch.mm``.

    :param row_major: for a D tensor, which has the result's layout, or is one row for all.
    """
    if operand.numel() == 0:  # strides of an empty batch mean nothing
        return operand.new_empty(operand.shape)
    if operand.is_contiguous():
        return operand
    if operand.dim() == 1:
        return inputs.copied(name, operand, _WHY)
    (rows, columns), (outer, inner) = operand.shape[-2:], operand.stride()[-2:]
    if row_major:
        if (inner == 1 or columns == 1) and (rows == 1 or outer >= columns or outer == 0):
            return operand
    elif rows == 1 or columns == 1:  # dense ones have both layouts, and kernels of each serve them
        if (inner if rows == 1 else outer) == 1:
            return operand
    elif (inner == 1 and outer >= columns) or (outer == 1 and inner >= rows):
        return operand
    return inputs.copied(name, operand, _WHY)


_WHY = "kernels read lines of values side by side that do not overlap"


def _shown(shape: Sequence[Any]) -> str:
    return str(tuple(shape))
