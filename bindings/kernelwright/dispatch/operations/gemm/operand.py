"""Operands of a GEMM: matrices, batches of matrices, D tensors, and a preshuffled B."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kernelwright.dispatch.arrays import allocate
from kernelwright.dispatch.arrays.view import ArrayView, Prepared, view
from kernelwright.dispatch.core.errors import ArrayError


class Operand(NamedTuple):
    """A matrix in memory, or a batch of matrices.

    :ivar pointer: address of the first element.
    :ivar shape: (rows, columns).
    :ivar strides: distances between rows and between columns, in elements.
    :ivar dtype: element type, such as ``fp16``.
    :ivar fnuz: whether 8-bit floats are in an FNUZ format instead of the OCP one.
    :ivar device: ``cpu``, ``cuda:0``, ``hip:0``, …
    :ivar family: the array library, such as ``numpy`` or ``torch``.
    :ivar owner: keeps the memory alive.
    :ivar batch: number of matrices; None for an array of two dimensions.
    :ivar batches: the extents before rows and columns; ``batch`` is their product.
    :ivar batch_stride: elements from one matrix to the next.
    :ivar b_format: format of a shuffled B, else 0; shape and strides of a shuffled B are those before shuffling.
    """

    pointer: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: str
    fnuz: bool
    device: str
    family: str
    owner: Any
    readonly: bool = False
    batch: int | None = None
    batch_stride: int = 0
    b_format: int = 0
    batches: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """Shape, element type and place, without the elements."""
        batch = "" if self.batch is None else f"{self.batch}*"
        where = f"{self.family} on {self.device} at {self.pointer:#x}"
        return f"<Operand {batch}{self.shown_shape} {self.dtype}, strides {self.strides}, {where}>"

    @property
    def signature(self) -> tuple[object, ...]:
        """Everything that a plan depends on: operands with equal signatures are interchangeable."""
        return (
            *(self.shape, self.strides, self.dtype, self.fnuz, self.device),
            *(self.batch, self.batch_stride, self.b_format),
        )

    @property
    def shown_shape(self) -> str:
        """Shape for messages, rows x columns, such as ``3x4``."""
        return "x".join(map(str, self.shape))


@dataclass(frozen=True, repr=False)
class ShuffledB(Prepared):
    """A matrix B in the order that kernels of one ``b_format`` read, made by :meth:`Dispatcher.shuffle_b`.

    :ivar data: its bytes: a NumPy array, or a tensor on the device.
    :ivar operand: shape, dtype and format of B.
    """

    data: Any
    operand: Operand

    def __repr__(self) -> str:
        """Shape, element type and format, without the elements."""
        return f"<ShuffledB {self.operand.shown_shape} {self.operand.dtype}, format {self.operand.b_format}>"

    @property
    def shape(self) -> tuple[int, int]:
        """(k, n)."""
        return self.operand.shape

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that a plan depends on."""
        return self.operand.signature


def operand(array: Any, name: str = "array", stream: int | None = None) -> Operand:
    """View a NumPy array, torch tensor, or anything with DLPack or ``__cuda_array_interface__`` as a matrix or a batch.

    :param array: an array of two dimensions, or more for a batch of matrices, or a :class:`ShuffledB`.
    :param name: its name in errors.
    :param stream: the stream on which a DLPack producer is asked to make the data ready.
    :raises ArrayError: for another kind of object, another rank, or a dtype that no kernel has.
    """
    if isinstance(array, ShuffledB):
        return array.operand
    return _of_view(view(array, name, stream), name)


def d_operand(array: Any, name: str, stream: int | None = None) -> Operand:
    """A D tensor: a matrix, a batch, or n values for every row."""
    array_view = view(array, name, stream)
    if len(array_view.shape) == 1:
        array_view = array_view._replace(shape=(1, *array_view.shape), strides=(0, *array_view.strides))
    return _of_view(array_view, name)


def _of_view(array_view: ArrayView, name: str) -> Operand:
    shape, strides = array_view.shape, array_view.strides
    if len(shape) < 2:
        raise ArrayError(f"{name} has shape {shape}; allowed: two dimensions, or more for a batch of matrices")
    batches = shape[:-2]
    batch, batch_stride = (shape[0], strides[0]) if len(shape) == 3 else _one_batch(array_view, name)
    return Operand(
        array_view.pointer, (shape[-2], shape[-1]), (strides[-2], strides[-1]), array_view.dtype, array_view.fnuz,
        array_view.device, array_view.family, array_view.owner, array_view.readonly, batch, batch_stride, 0, batches,
    )  # fmt: skip


def _one_batch(array_view: ArrayView, name: str) -> tuple[int | None, int]:
    """Number of matrices in a batch of any rank, and their common stride. Raises ArrayError if there is none."""
    batches = array_view.shape[:-2]
    if not batches:
        return None, 0
    if 0 in batches:
        return 0, 0
    count, stride = 1, 0
    for extent, distance in zip(reversed(batches), reversed(array_view.strides[:-2]), strict=True):
        if extent == 1:
            continue
        if count > 1 and distance != stride * count:
            whole = f"{name} has shape {array_view.shape} and strides {array_view.strides}"
            raise ArrayError(f"{whole}; its matrices must have one distance between neighbours: pass a copy")
        stride = stride if count > 1 else distance
        count *= extent
    return count, stride


def allocator(
    like: Operand, shape: tuple[int, ...], dtype: str, row_major: bool, owner: Any = None
) -> Callable[[], Any]:
    """Return a function that makes uninitialised matrices, or batches, with the same array library and device.

    Matrices are column-major if not ``row_major``.

    Raises ArrayError for an array library whose arrays cannot be allocated here.
    """
    stored = shape if row_major else (*shape[:-2], shape[-1], shape[-2])
    make = allocate.allocator(like.family, stored, dtype, owner, like.fnuz)
    if row_major:
        return make
    if len(shape) == 2:
        return (lambda: make().t()) if like.family == "torch" else (lambda: make().T)
    return (lambda: make().transpose(-1, -2)) if like.family == "torch" else (lambda: make().swapaxes(-1, -2))
