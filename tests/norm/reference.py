"""Norms and their gradients in float64, and operands in guarded memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
# Of the largest result: rounding of the result, and sums in fp32.
BOUNDS = {"fp32": 3e-6, "fp16": 6e-4, "bf16": 5e-3}


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, offset: float = 0.0) -> Any:
    """Normal numbers."""
    return (rng.standard_normal(shape) + offset).astype(DTYPES[dtype])


def off(actual: Any, exact: Any, terms: Any = None) -> float:
    """The largest error as a share of the largest number, or of the largest of its row's terms, which may cancel."""
    wide = np.asarray(actual).astype(np.float64)
    assert np.isfinite(wide).all(), "an element was not written"
    scale = np.abs(exact).max(initial=0) if terms is None else terms.max(-1, initial=0, keepdims=True)
    return float((np.abs(wide - exact) / np.maximum(scale, 1e-30)).max(initial=0))


class Statistics(NamedTuple):
    """Statistics of rows: what is normalised, one over the root, and the size of the mean in units of the root.

    Taking off a mean costs the digits by which it exceeds the root: an error of ``mean / root`` roundings.
    """

    normalised: Array
    inverse: Array
    lost: Array


def statistics(s: Array, kind: str, epsilon: float) -> Statistics:
    """Statistics of the rows of ``s``."""
    wide = s.astype(np.float64)
    mean = wide.mean(-1, keepdims=True) if kind == "layer" else np.zeros((*wide.shape[:-1], 1))
    apart = wide - mean
    inverse = 1 / np.sqrt((apart * apart).mean(-1, keepdims=True) + epsilon)
    return Statistics(apart * inverse, inverse, np.abs(mean) * inverse)


def forward(s: Array, kind: str, epsilon: float, weight: Array | None, bias: Array | None) -> Array:
    """The norm of rows."""
    normed = statistics(s, kind, epsilon).normalised
    normed = normed if weight is None else normed * weight.astype(np.float64)
    return normed if bias is None else normed + bias.astype(np.float64)


def forward_terms(s: Array, kind: str, epsilon: float, weight: Array | None, bias: Array | None) -> Array:
    """The sums of the absolute values of what results are sums of: their errors are shares of these."""
    stats = statistics(s, kind, epsilon)
    size = np.abs(stats.normalised) + stats.lost
    size = size if weight is None else size * np.abs(weight.astype(np.float64))
    return size if bias is None else size + np.abs(bias.astype(np.float64))


def backward(
    s: Array, dy: Array, kind: str, epsilon: float, weight: Array | None, dsum: Array | None
) -> tuple[Array, Array, Array]:
    """dx, dweight and dbias."""
    h, inverse, _ = statistics(s, kind, epsilon)
    wide = dy.astype(np.float64)
    g = wide if weight is None else wide * weight.astype(np.float64)
    mean = g.mean(-1, keepdims=True) if kind == "layer" else 0.0
    dx = inverse * (g - mean - h * (g * h).mean(-1, keepdims=True))
    rows = tuple(range(s.ndim - 1))
    return dx if dsum is None else dx + dsum.astype(np.float64), (wide * h).sum(rows), wide.sum(rows)


def backward_terms(
    s: Array, dy: Array, kind: str, epsilon: float, weight: Array | None, dsum: Array | None
) -> tuple[Array, Array, Array]:
    """The sums of the absolute values of what dx, dweight and dbias are sums of: their errors are shares of these.

    The terms of dx cancel where a row has few columns: layer norm of two leaves epsilon of them.
    """
    h, inverse, lost = statistics(s, kind, epsilon)
    wide = np.abs(dy.astype(np.float64))
    g = wide if weight is None else wide * np.abs(weight.astype(np.float64))
    mean = g.mean(-1, keepdims=True) if kind == "layer" else 0.0
    size = np.abs(h) + lost
    dx = inverse * (g + mean + size * (g * size).mean(-1, keepdims=True))
    rows = tuple(range(s.ndim - 1))
    added = 0.0 if dsum is None else np.abs(dsum.astype(np.float64))
    return dx + added, (wide * size).sum(rows), wide.sum(rows)


class Guarded(NamedTuple):
    """Rows with gaps between them, in memory that is NaN everywhere else."""

    array: Array
    memory: Array

    def untouched(self) -> bool:
        """Whether everything outside of the rows is as it was."""
        copy = self.memory.copy()
        rows, columns = self.array.shape
        view = copy[_FRONT : _FRONT + rows * self._pitch].reshape(rows, self._pitch)[:, :columns]
        view[...] = np.nan
        return bool(np.isnan(copy.astype(np.float32)).all())

    @property
    def _pitch(self) -> int:
        return self.array.strides[0] // self.array.itemsize


_FRONT = 5


def guarded(values: Array, gap: int) -> Guarded:
    """The values with ``gap`` elements behind each row."""
    rows, columns = values.shape
    memory = np.full(_FRONT + rows * (columns + gap) + _FRONT, np.nan, values.dtype)
    array = memory[_FRONT : _FRONT + rows * (columns + gap)].reshape(rows, columns + gap)[:, :columns]
    array[...] = values
    return Guarded(array, memory)
