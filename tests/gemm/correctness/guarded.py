"""Operands between guard bands in memory that is otherwise poisoned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

GUARD = 1024  # bytes on each side, at least
_GUARD_BYTE = 0xA5
_ALIGNMENT = 256  # of what allocators give


def poison(dtype: np.dtype[Any]) -> Any:
    """What nobody may compute with: NaN, or the largest integer."""
    return np.iinfo(dtype).max if dtype.kind in "iu" else dtype.type(np.nan)


@dataclass(eq=False)
class Block:
    """An operand of ``shape`` at ``strides`` (elements, 0 for what repeats) between guards; gaps hold poison.

    The operand ends with its last element: the guard follows at once. ``values`` is the view of what it holds.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    raw: np.ndarray[Any, np.dtype[np.uint8]] = field(init=False)
    values: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        size = self.dtype.itemsize
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        self.nbytes = 0 if 0 in self.shape else (last + 1) * size
        self.raw = np.full(2 * GUARD + self.nbytes + _ALIGNMENT, _GUARD_BYTE, np.uint8)
        self.offset = GUARD + -(self.raw.ctypes.data + GUARD) % _ALIGNMENT
        self.values = self._view(self.raw)
        self.clear()

    def _view(self, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        steps = tuple(stride * self.dtype.itemsize for stride in self.strides)
        return np.ndarray(self.shape, self.dtype, raw.data, self.offset, steps)

    def clear(self) -> None:
        """Poison everything between the guards."""
        self.raw[self.offset : self.offset + self.nbytes].view(self.dtype)[:] = poison(self.dtype)

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.raw.ctypes.data + self.offset

    def assert_untouched_around(self) -> None:
        """AssertionError if a guard or a gap is not as it was made."""
        copy = self.raw.copy()
        self._view(copy)[...] = poison(self.dtype)
        clean = Block(self.shape, self.strides, self.dtype)
        inside = slice(self.offset, self.offset + self.nbytes)
        assert (copy[: self.offset] == _GUARD_BYTE).all(), "memory before the operand was written"
        assert (copy[self.offset + self.nbytes :] == _GUARD_BYTE).all(), "memory behind the operand was written"
        same = copy[inside] == clean.raw[clean.offset : clean.offset + clean.nbytes]
        assert same.all(), f"a gap was written, {int(np.argmin(same))} bytes behind the first element"


def scratch(nbytes: int) -> Block:
    """Workspace of NaN between guards."""
    return Block((-(-nbytes // 4),), (1,), np.dtype(np.float32))


def fill(block: Block, rng: np.random.Generator, whole: bool, most: int = 4) -> None:
    """Small whole numbers, exact in every dtype and sum, or normal numbers; of int8 and int32, any that cannot wrap."""
    shape, dtype = block.values.shape, block.dtype
    if whole:
        block.values[...] = rng.integers(-most, most + 1, shape).astype(dtype)
    elif dtype.kind == "i":
        limit = 128 if dtype.itemsize == 1 else 2**20
        block.values[...] = rng.integers(-limit, limit, shape).astype(dtype)
    else:
        block.values[...] = rng.standard_normal(shape).astype(np.float32).astype(dtype)
