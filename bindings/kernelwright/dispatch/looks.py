"""Recognises arrays that look like checked ones, everything but the address, and reads their addresses quickly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch.arrays import documented_address, header_bytes, is_torch, read_word

Addresses = tuple[int, int, int | None, int, Sequence[int]]  # of A, B, C, D and every D tensor


class Look(Protocol):
    """How the arrays of a call looked that passed every check of a plan."""

    def addresses(
        self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = (), known: bool = False
    ) -> Addresses | None:
        """The addresses of arrays that look the same; None where a closer look is needed.

        ``known``: their :func:`call_key` is that of the checked ones, so what is in it need not be compared.
        """


def look_of(a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = ()) -> Look | None:
    """The look of checked arrays. None for kinds of arrays that are not cheaper to compare than to check again."""
    given = [array for array in (a, b, c, out, *ds) if array is not None]
    if all(type(array) is np.ndarray for array in given):
        return NumpyLook(a, b, c, out, ds)
    if all(is_torch(array) for array in given):
        return TorchLook(a, b, c, out, ds)
    return None


def call_key(a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = ()) -> tuple[object, ...] | None:
    """Finds what was remembered for such arrays, to be compared with their look still; None where nothing is.

    Of C only its presence counts and of D tensors only their number: arrays of other shapes then look different.
    """
    kind = type(a)
    if kind is np.ndarray and type(b) is kind and (out is None or type(out) is kind):
        result = None if out is None else (out.shape, out.strides, out.dtype)
        return kind, a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, result, c is None, len(ds)
    if is_torch(a) and is_torch(b) and (out is None or is_torch(out)):
        try:
            lines = None if out is None else out.stride()
            return kind, a.shape, a.stride(), a.dtype, b.shape, b.stride(), lines, c is None, len(ds)
        except RuntimeError:  # sparse tensors have no strides
            return None
    return None


class NumpyLook:
    """Shapes, strides and dtypes of NumPy arrays; alignment and permission to write are asked for each time."""

    __slots__ = ("_a", "_b", "_c", "_ds", "_head", "_out")

    def __init__(self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = ()) -> None:
        """``c`` may be None."""
        self._ds = [(d.shape, d.strides, d.dtype) for d in ds]
        self._a = a.shape, a.strides, a.dtype
        self._b = b.shape, b.strides, b.dtype
        self._c = None if c is None else (c.shape, c.strides, c.dtype)
        self._out = out.shape, out.strides, out.dtype
        self._head = header_bytes()

    def addresses(
        self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = (), known: bool = False
    ) -> Addresses | None:
        """See :class:`Look`."""
        if not known:
            kind = np.ndarray
            if (
                type(a) is not kind
                or type(b) is not kind
                or type(out) is not kind
                or (a.shape, a.strides, a.dtype) != self._a
                or (b.shape, b.strides, b.dtype) != self._b
                or (out.shape, out.strides, out.dtype) != self._out
            ):
                return None
        if not (a.flags.aligned and b.flags.aligned and out.flags.behaved):  # that one aligned and writable
            return None
        if (c is not None or self._c is not None) and not self._same_c(c):
            return None
        if (ds or self._ds) and not self._same_ds(ds):
            return None
        head = self._head
        if head is None:
            third = None if c is None else documented_address(c)
            return (
                documented_address(a),
                documented_address(b),
                third,
                documented_address(out),
                tuple(map(documented_address, ds)),
            )
        return (
            read_word(id(a) + head).value,
            read_word(id(b) + head).value,
            None if c is None else read_word(id(c) + head).value,
            read_word(id(out) + head).value,
            tuple([read_word(id(d) + head).value for d in ds]) if ds else (),
        )

    def _same_c(self, c: Any) -> bool:
        return type(c) is np.ndarray and (c.shape, c.strides, c.dtype) == self._c and bool(c.flags.aligned)

    def _same_ds(self, ds: Sequence[Any]) -> bool:
        if len(ds) != len(self._ds):
            return False
        for d, wanted in zip(ds, self._ds, strict=True):
            if type(d) is not np.ndarray or (d.shape, d.strides, d.dtype) != wanted or not d.flags.aligned:
                return False
        return True


class TorchLook:
    """What torch's own compiler guards of tensors: type, dtype, device, layout, sizes and strides, in one call."""

    __slots__ = ("_count", "_has_c", "_same")

    def __init__(self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = ()) -> None:
        """``c`` may be None."""
        tensors = (a, b, out, *ds) if c is None else (a, b, out, c, *ds)
        guard = guards() or attribute_guard
        self._has_c = c is not None
        self._count = len(ds)
        self._same = guard(*tensors)

    def addresses(
        self, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = (), known: bool = False
    ) -> Addresses | None:
        """See :class:`Look`; the guards are one call, which all tensors have to pass."""
        if len(ds) != self._count:
            return None
        if c is None and not self._has_c:
            if self._same(a, b, out, *ds):
                return a.data_ptr(), b.data_ptr(), None, out.data_ptr(), tuple([d.data_ptr() for d in ds])
        elif self._has_c and self._same(a, b, out, c, *ds):
            return a.data_ptr(), b.data_ptr(), c.data_ptr(), out.data_ptr(), tuple([d.data_ptr() for d in ds])
        return None


Guard = Callable[..., Callable[..., bool]]  # from tensors to a function that says whether others look the same


def attribute_guard(*tensors: Any) -> Callable[..., bool]:
    """Compares attributes one by one: three times slower than torch's guards."""

    def look(tensor: Any) -> tuple[Any, ...] | None:
        if not is_torch(tensor):
            return None
        return type(tensor), tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.layout

    wanted = [look(tensor) for tensor in tensors]
    return lambda *others: [look(other) for other in others] == wanted


@cache
def guards() -> Guard | None:
    """torch's guards where this torch has them and they prove to tell tensors apart; they are no public interface."""
    torch = sys.modules["torch"]
    try:
        kind = torch._C._dynamo.guards.TensorGuards

        def guard(*tensors: Any) -> Callable[..., bool]:
            sizes = [list(tensor.shape) for tensor in tensors]
            strides = [list(tensor.stride()) for tensor in tensors]
            check: Callable[..., bool] = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
            return check

        one = torch.zeros(3, 4)
        same = guard(one, one)
        others: tuple[Any, ...] = (
            one.t(),
            torch.zeros(4, 3),
            torch.zeros(4, 3).t(),
            torch.zeros(3, 4, dtype=torch.int32),
        )
        others += (torch.zeros(3, 8)[:, :4], one.to_sparse(), torch.zeros(3, 4, device="meta"), one.numpy(), None)
        works = same(one, torch.ones(3, 4)) and not any(same(one, other) for other in others)
    except Exception:  # whatever a changed private interface does
        return None
    return guard if works else None
