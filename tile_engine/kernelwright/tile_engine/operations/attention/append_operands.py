"""Arrays for appending to a cache, and the error of the cache."""

from __future__ import annotations

import numpy as np

from kernelwright.dispatch import dtypes
from kernelwright.dispatch.operations.attention.operand import wanted
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.operations.attention.exact import ROUNDOFF, Array, Result
from kernelwright.tile_engine.operations.attention.operands import names_of, shape_of
from kernelwright.tile_engine.operations.attention.requests import lengths_of, problem_of

_STEPS = 4  # values are integers from -4 to 4, divided by 4
_CACHES = {"k_cache": "k", "v_cache": "v"}


class AppendOperands:
    """Operands of one problem by name. Caches hold old rows, and poison in the places of new rows."""

    def __init__(self, record: Record, seed: int) -> None:
        """Draw the operands; equal seeds give equal numbers."""
        self._record, self._rng = record, np.random.default_rng(seed)
        problem = problem_of(record)
        reads, writes = names_of(problem)
        needed = wanted(problem)
        lengths = lengths_of(record, problem, self._rng)
        self.named = {
            name: lengths[name] if name in lengths else self._drawn(shape_of(needed[name]), needed[name].dtype)
            for name in (*reads, *writes)
        }
        if "cos" in self.named:
            self._set_angles()
        self._old = {name: self.named[name].copy() for name in _CACHES}
        self.inputs = tuple(self.named[name] for name in reads)
        self.outs = tuple(self.named[name] for name in writes)
        self.poison()

    def poison(self) -> None:
        """Write NaN to the places of new rows, and restore the rest of the cache."""
        for name, old in self._old.items():
            self.named[name][...] = old
            pages, rows = self._places()
            self.named[name][pages, rows] = np.nan
        if "q_out" in self.named:
            self.named["q_out"][...] = np.nan

    def error(self) -> float:
        """The error of every element of the caches, and of Q if it is rotated."""
        errors = [self._cache_error(name, new) for name, new in _CACHES.items()]
        if "q_out" in self.named:
            errors.append(self._turned(self.named["q"]).share(self.named["q_out"]))
        return max(errors)

    def _cache_error(self, name: str, new: str) -> float:
        pages, rows = self._places()
        written = self.named[name][pages, rows]
        rest, old = self.named[name].astype(np.float64), self._old[name].astype(np.float64)
        rest[pages, rows] = old[pages, rows] = 0
        if not np.array_equal(rest, old):
            return float("inf")
        values = self.named[new]
        exact = values.astype(np.float64)
        result = self._turned(values) if new == "k" else Result(exact, np.zeros(exact.shape))
        return result.share(written)

    def _places(self) -> tuple[Array, Array]:
        """Places of new rows: requests, or pages, and rows in them, each requests x new rows."""
        at = self._first()[:, None] + np.arange(self._record["seqlen_q"])[None, :]
        if not self._record["page_size"]:
            return np.broadcast_to(np.arange(len(at))[:, None], at.shape), at
        size = self._record["page_size"]
        return np.take_along_axis(self.named["page_table"], at // size, axis=1), at % size

    def _first(self) -> Array:
        return self.named["seqlens_k"].astype(np.int64)

    def _turned(self, values: Array) -> Result:
        """Rows with rotary embedding: pairs of elements half the rotary dimension apart."""
        exact = values.astype(np.float64)
        size, half = np.zeros(exact.shape), self._record["rotary_dim"] // 2
        unit = ROUNDOFF[self._record["dtype"]]
        if not half:
            return Result(exact, size)
        at = self._first()[:, None] + np.arange(values.shape[1])[None, :]
        cos, sin = (self.named[name].astype(np.float64)[at][:, :, None] for name in ("cos", "sin"))
        low, high = exact[..., :half].copy(), exact[..., half : 2 * half].copy()
        exact[..., :half], exact[..., half : 2 * half] = low * cos - high * sin, high * cos + low * sin
        size[..., :half] = np.abs(low * cos) + np.abs(high * sin)
        size[..., half : 2 * half] = np.abs(high * cos) + np.abs(low * sin)
        return Result(exact, 2 * unit * size)

    def _set_angles(self) -> None:
        """Set cosines and sines of positions, as published (RoFormer, 2021)."""
        places, half = self.named["cos"].shape
        angles = np.arange(places)[:, None] * 10000.0 ** (-np.arange(half) / half)
        self.named["cos"][...], self.named["sin"][...] = np.cos(angles), np.sin(angles)

    def _drawn(self, shape: tuple[int, ...], dtype: str) -> Array:
        values = self._rng.integers(-_STEPS, _STEPS + 1, shape, np.int8) / np.float32(_STEPS)
        return values.astype(dtypes.numpy_dtype(dtype))
