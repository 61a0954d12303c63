"""Matrices in guarded memory and their exact product, for kernels that run in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

GUARD = 512  # bytes on each side of a matrix
_GUARD_BYTE = 0xA5


def element_type(dtype: str, arch: str) -> np.dtype:
    """The NumPy type of a dtype; 8-bit floats are FNUZ on gfx942 and OCP elsewhere."""
    fnuz = "fnuz" if arch == "gfx942" else ""
    names: Mapping[str, object] = {
        "fp32": np.float32,
        "fp16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "fp8": getattr(ml_dtypes, f"float8_e4m3{fnuz or 'fn'}"),
        "bf8": getattr(ml_dtypes, f"float8_e5m2{fnuz}"),
        "int8": np.int8,
        "int32": np.int32,
    }
    return np.dtype(names[dtype])  # type: ignore[arg-type]


def poison(dtype: np.dtype) -> np.generic:
    """What nobody may compute with: NaN, or the largest integer."""
    return dtype.type(np.iinfo(dtype).max) if dtype.kind == "i" else dtype.type(np.nan)


@dataclass
class Matrix:
    """``rows`` x ``columns`` at a leading dimension, between guards; ``letter`` is r or c.

    The gaps of the leading dimension hold poison. The last row ends where its extent does: the guard follows at once.
    """

    letter: str
    rows: int
    columns: int
    leading: int
    dtype: np.dtype
    memory: np.ndarray = field(init=False)
    values: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        lines, extent = self._lines()
        count = (lines - 1) * self.leading + extent if lines else 0
        size = self.dtype.itemsize
        raw = np.full(2 * GUARD + count * size + 256, _GUARD_BYTE, np.uint8)
        start = GUARD + -(raw.ctypes.data + GUARD) % 256  # as allocators align
        self.memory, self._start, self._bytes = raw, start, count * size
        flat = raw[start : start + count * size].view(self.dtype)
        flat[:] = poison(self.dtype)
        stored = np.ndarray((lines, extent), self.dtype, raw.data, start, (self.leading * size, size))
        self.values = stored if self.letter == "r" else stored.T
        self._flat = flat

    def _lines(self) -> tuple[int, int]:
        return (self.rows, self.columns) if self.letter == "r" else (self.columns, self.rows)

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.memory.ctypes.data + self._start

    @property
    def nbytes(self) -> int:
        """From the first element to behind the last one."""
        return self._bytes

    def check_surroundings(self) -> None:
        """AssertionError unless guards and gaps are as they were made."""
        assert (self.memory[: self._start] == _GUARD_BYTE).all(), "memory before the matrix was written"
        assert (self.memory[self._start + self._bytes :] == _GUARD_BYTE).all(), "memory behind the matrix was written"
        lines, extent = self._lines()
        size = self.dtype.itemsize
        clean = np.full(1, poison(self.dtype), self.dtype).tobytes()
        for line in range(lines - 1):
            gap = self._flat[line * self.leading + extent : (line + 1) * self.leading].tobytes()
            assert gap == clean * (len(gap) // size), f"the gap behind row {line} was written"


def fill_integers(matrix: Matrix, rng: np.random.Generator, most: int = 4) -> None:
    """Whole numbers from -most to most: products and sums of them are exact in every accumulator."""
    matrix.values[...] = rng.integers(-most, most + 1, matrix.values.shape).astype(matrix.dtype)


def fill_normal(matrix: Matrix, rng: np.random.Generator) -> None:
    """Standard normal numbers, rounded to the dtype; of integers, any."""
    if matrix.dtype.kind == "i":
        limits = np.iinfo(matrix.dtype)
        matrix.values[...] = rng.integers(limits.min, limits.max + 1, matrix.values.shape).astype(matrix.dtype)
        return
    matrix.values[...] = rng.standard_normal(matrix.values.shape).astype(matrix.dtype)


def exact_product(a: Matrix, b: Matrix) -> np.ndarray:
    """A·B in float64."""
    product: np.ndarray = a.values.astype(np.float64) @ b.values.astype(np.float64)
    return product


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 as a kernel stores it: through its 32-bit accumulator, each step to nearest even."""
    if dtype.kind == "i":
        return values.astype(dtype)
    return values.astype(np.float32).astype(dtype)


def assert_equal(result: Matrix, expected: np.ndarray) -> None:
    """Bit for bit, but for the sign of zero."""
    actual, wanted = result.values.astype(np.float64), rounded(expected, result.dtype).astype(np.float64)
    wrong = np.argwhere(~(actual == wanted))
    if len(wrong):
        row, column = wrong[0]
        raise AssertionError(
            f"{len(wrong)} of {actual.size} elements are wrong, first [{row}, {column}]: "
            f"{actual[row, column]} instead of {wanted[row, column]}"
        )


def assert_close(result: Matrix, a: Matrix, b: Matrix, scale: float = 1.0) -> None:
    """Within the bound of a sum in fp32 of k products, and one rounding to the result's dtype.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 3.1: |error| <= gamma_k |A| |B|, in any order.
    """
    expected = scale * exact_product(a, b)
    magnitude = abs(scale) * (np.abs(a.values.astype(np.float64)) @ np.abs(b.values.astype(np.float64)))
    unit = float(ml_dtypes.finfo(result.dtype).eps) / 2
    bound = (a.columns + 2) * 2.0**-24 * magnitude + unit * np.abs(expected) * (1 + 1e-6)
    error = np.abs(result.values.astype(np.float64) - expected)
    assert not np.isnan(error).any(), "the result has NaN"
    assert (error <= bound).all(), f"error is {np.max(error / bound):.2f} times the bound"
