"""Whole numbers in rules: counterpart of ``kernelwright/widths.h`` for C, whose numbers end at 63 bits."""

from __future__ import annotations

import math

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType

INT16_MAX, INT32_MIN, INT32_MAX, UINT32_MAX = (1 << 15) - 1, -(1 << 31), (1 << 31) - 1, (1 << 32) - 1
_INT64_MAX = (1 << 63) - 1
_FP32_END = 3.4028235677973366e38  # rounds to infinity


def parts(count: int, size: int) -> int:
    """Number of parts of ``size`` that cover ``count``; the last may be partial."""
    return -(-count // size)


def fits_int16(value: int) -> bool:
    """Whether a count is at most 2^15 - 1; a negative number is not a count."""
    return 0 <= value <= INT16_MAX


def fits_int32(value: int) -> bool:
    """Whether a count is at most 2^31 - 1."""
    return 0 <= value <= INT32_MAX


def fits_uint32(value: int) -> bool:
    """Whether a count is at most 2^32 - 1."""
    return 0 <= value <= UINT32_MAX


def fits_int64(value: int) -> bool:
    """Whether a count is below 2^63 - 1, which stands for any count that is too large."""
    return 0 <= value < _INT64_MAX


def bytes_fit_int32(elements: int, size: int) -> bool:
    """Whether byte offsets of ``elements`` elements of ``size`` bytes fit into 31 bits."""
    return fits_int32(elements * size)


def element_bytes(dtype: DType | None) -> int:
    """Bytes of an element; 0 without a type."""
    return ELEMENT_BYTES[dtype] if dtype else 0


def dtype_name(dtype: DType | None) -> str:
    """Name of a type in messages."""
    return str(dtype or "unknown")


def finite_fp32(value: float) -> bool:
    """Whether a number is finite as fp32."""
    return abs(value) < _FP32_END


def whole(value: float) -> bool:
    """Whether a number below 2^63 is whole."""
    return math.isfinite(value) and value == math.floor(value)
