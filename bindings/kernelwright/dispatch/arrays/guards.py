"""Recognise arrays by their metadata, so that repeated calls skip the checks and only read addresses.

A guard is made from arrays that passed every check of a plan. Arrays with the same types, dtypes, shapes, strides and
devices pass it; all others are checked in full. NumPy arrays are compared attribute by attribute. torch tensors are
compared by the guards of torch's own compiler if this torch has them and they pass a trial, else by attributes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch.arrays.forks import Undivided
from kernelwright.dispatch.arrays.view import Prepared, is_torch
from kernelwright.dispatch.core import native

Operands = tuple[Any, ...]  # inputs before outputs; None for an absent optional operand
Addresses = Sequence[Any]  # one for each operand: int, or None if it is absent


class Guard(Protocol):
    """The metadata of checked arrays."""

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """Return the addresses of arrays with the same metadata; None if the arrays must be checked.

        ``keyed``: they have the :func:`metadata_key` of the checked arrays, so its contents need not be compared.
        """


def guard_of(operands: Operands, outputs: int = 1) -> Guard | None:
    """Return a guard for checked operands, the last ``outputs`` of which are written.

    Returns None for kinds of arrays that are no faster to compare than to check again.
    """
    prepared = {at: one.key for at, one in enumerate(operands) if isinstance(one, Prepared)}
    plain = tuple(one.data if isinstance(one, Prepared) else one for one in operands)
    given = [array for array in plain if array is not None]
    made: Guard
    if all(type(array) is np.ndarray for array in given):
        made = NumpyGuard(plain, outputs)
    elif all(is_torch(array) for array in given):
        made = TorchGuard(plain)
    else:
        return None
    return PreparedGuard(made, prepared) if prepared else made


def metadata_key(operands: Operands) -> tuple[object, ...] | None:
    """A hashable key of the operands' metadata; None for kinds of arrays that have no guard."""
    key: list[object] = []
    numpy = np.ndarray
    for array in operands:
        kind = type(array)
        if kind is numpy:
            key.append((array.shape, array.strides, array.dtype))
        elif array is None:
            key.append(None)
        elif is_torch(array):
            try:
                key.append((kind, array.shape, array.stride(), array.dtype))
            except RuntimeError:  # sparse tensors have no strides
                return None
        elif isinstance(array, Prepared):
            key.append((array.key, metadata_key((array.data,))))
        else:
            return None
    return tuple(key)


class NumpyGuard:
    """Shapes, strides and dtypes of NumPy arrays; alignment and writability are read each time."""

    __slots__ = ("_metadata", "_outputs", "_read")

    def __init__(self, operands: Operands, outputs: int) -> None:
        """See :func:`guard_of`."""
        self._metadata = metadata_key(operands)
        self._outputs = outputs
        self._read = native.extension().array_addresses

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """See :class:`Guard`."""
        if not keyed and metadata_key(operands) != self._metadata:
            return None
        return self._read(operands, self._outputs)


class TorchGuard:
    """Compares type, dtype, device, layout, sizes, strides, sign and grad in one call, like torch's own compiler."""

    __slots__ = ("_absent", "_count", "_present", "_recording", "_same")

    def __init__(self, operands: Operands) -> None:
        """See :func:`guard_of`."""
        self._count = len(operands)
        self._absent = tuple(at for at, tensor in enumerate(operands) if tensor is None)
        present = [at for at, tensor in enumerate(operands) if tensor is not None]
        self._present = itemgetter(*present) if len(present) > 1 else lambda given: tuple(given[at] for at in present)
        self._same = (compiler_guard() or attribute_guard)(*self._present(operands))
        # Tensors that require grad pass the checks only while autograd records nothing.
        differentiable = any(tensor.requires_grad for tensor in self._present(operands))
        self._recording = sys.modules["torch"].is_grad_enabled if differentiable else None

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """See :class:`Guard`; tensors with a known key take the same call, which compares their devices too."""
        if len(operands) != self._count or not self._same(*self._present(operands)):
            return None
        if self._recording is not None and self._recording():
            return None
        for at in self._absent:
            if operands[at] is not None:
                return None
        return [None if tensor is None else tensor.data_ptr() for tensor in operands]


class PreparedGuard:
    """A guard of operands, some of which are prepared for a kernel."""

    __slots__ = ("_guard", "_keys")

    def __init__(self, guard: Guard, keys: dict[int, tuple[object, ...]]) -> None:
        """``guard`` compares the data of prepared operands; ``keys`` holds their keys by position."""
        self._guard = guard
        self._keys = keys

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """See :class:`Guard`."""
        plain = list(operands)
        for at, key in self._keys.items():
            one = operands[at] if at < len(operands) else None
            if not isinstance(one, Prepared) or (not keyed and one.key != key):
                return None
            plain[at] = one.data
        return self._guard.addresses(tuple(plain), keyed)


TensorsGuard = Callable[..., Callable[..., bool]]  # from tensors to a function that compares others with them


def attribute_guard(*tensors: Any) -> Callable[..., bool]:
    """Compare attributes one by one: three times slower than torch's guards."""

    def metadata(tensor: Any) -> tuple[Any, ...] | None:
        if not is_torch(tensor):
            return None
        kind = type(tensor), tensor.dtype, tensor.device, tensor.layout, tensor.is_neg(), tensor.requires_grad
        return *kind, tensor.shape, tensor.stride()

    expected = [metadata(tensor) for tensor in tensors]
    return lambda *others: [metadata(other) for other in others] == expected


@Undivided
def compiler_guard() -> TensorsGuard | None:
    """torch's guards, a private interface; None if this torch lacks them or they fail a trial."""
    torch = sys.modules["torch"]
    try:
        kind = torch._C._dynamo.guards.TensorGuards

        def guard(*tensors: Any) -> Callable[..., bool]:
            sizes = [list(tensor.shape) for tensor in tensors]
            strides = [list(tensor.stride()) for tensor in tensors]
            check: Callable[..., bool] = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
            return check

        with torch.inference_mode(False):  # whatever the mode of the first thread
            works = _tells_apart(guard, torch)
    except Exception:  # whatever a changed private interface raises
        return None
    return guard if works else None


def _tells_apart(guard: TensorsGuard, torch: Any) -> bool:
    """Whether a guard accepts tensors like its own and rejects all that kernels must not mistake for them."""
    zeros = partial(torch.zeros, device="cpu")  # as a context, torch.device would import a module in a first call
    one = zeros(3, 4)
    same = guard(one, one)
    others: tuple[Any, ...] = (one.t(), zeros(4, 3), zeros(4, 3).t(), zeros(3, 4, dtype=torch.int32))
    others += (zeros(3, 8)[:, :4], one.to_sparse(), torch.zeros(3, 4, device="meta"), one.numpy(), None)
    others += (zeros(3, 4, requires_grad=True),)
    works = same(one, zeros(3, 4)) and not any(same(one, other) for other in others)
    whole = zeros(3, 4, dtype=torch.complex64)
    negative = whole.conj().imag  # a view whose memory holds the opposite sign
    return bool(works and guard(whole.imag)(whole.imag) and not guard(whole.imag)(negative))
