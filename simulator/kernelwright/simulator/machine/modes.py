"""The floating-point modes of a wave, and the arithmetic that they change: rounding, and flushing of denormals.

``wave.mode`` is the MODE register: bits 1:0 round fp32, 3:2 round fp64 and fp16, 5:4 denormals of fp32, 7:6 denormals
of fp64 and fp16, bit 8 DX10_CLAMP, bit 9 IEEE (CDNA3 and RDNA3 ISA guides, "MODE register"; gfx12 has no bits 8 and 9
and behaves as if both were set). Almost every kernel runs with FLOAT_MODE 0xF0, which is NumPy's own behaviour, so a
step checks the mode first and calls these functions only for other modes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled

NEAREST, UP, DOWN, ZERO = range(4)  # round modes
_DX10_CLAMP, _IEEE = 1 << 8, 1 << 9
OVERFLOW = 1 << 23  # FP16_OVFL: fp16 and fp8 results that overflow become the largest number


class FloatMode:
    """The bits of MODE for one float type: ``mask`` selects them; with the value ``plain``, NumPy does the same."""

    def __init__(self, round_shift: int, denormal_shift: int, more: int = 0) -> None:
        self.round_shift = round_shift
        self.denormal_shift = denormal_shift
        self.plain = 3 << denormal_shift
        self.mask = 3 << round_shift | self.plain | more

    def rounding(self, mode: int) -> int:
        """The round mode."""
        return mode >> self.round_shift & 3

    def keeps_inputs(self, mode: int) -> bool:
        """Whether denormal inputs are kept."""
        return bool(mode >> self.denormal_shift & 1)

    def keeps_outputs(self, mode: int) -> bool:
        """Whether denormal results are kept."""
        return bool(mode >> self.denormal_shift & 2)


_TYPES: tuple[Any, ...] = (np.float16, np.float32, np.float64)
# Bytes of a type → its smallest normal number and its zero.
_LEAST = {type_(0).itemsize: (np.finfo(type_).tiny, type_(0)) for type_ in _TYPES}

SINGLE, OTHER = FloatMode(0, 4), FloatMode(2, 6, OVERFLOW)
MODE_OF = {"f32": SINGLE, "f16": OTHER, "f64": OTHER}


def ieee(mode: int, target: Target) -> bool:
    """Whether signalling NaNs are quieted by minimum and maximum, and output modifiers ignored."""
    return target.tables == "rdna4" or bool(mode & _IEEE)


def clamps_nan(mode: int, target: Target) -> bool:
    """Whether clamping turns a NaN into zero."""
    return target.tables == "rdna4" or bool(mode & _DX10_CLAMP)


def refuse_saturation(mode: int, kind: str) -> None:
    """Raise Unmodelled if the mode makes results of ``kind`` saturate: only conversions to fp8 do so here."""
    if kind == "f16" and mode & OVERFLOW:
        raise Unmodelled("fp16 arithmetic with FP16_OVFL set")


def flush(values: Any) -> Any:
    """Denormals as zeros of the same sign."""
    least, zero = _LEAST[values.itemsize]
    small = np.abs(values) < least
    return np.where(small, np.copysign(zero, values), values) if np.count_nonzero(small) else values


def narrow(wide: Any, dtype: Any, rounding: int) -> Any:
    """Round float64 once to fp32 or fp16.

    Directed rounding is nearest rounding, corrected by one step if it went the wrong way.
    """
    near = wide.astype(dtype)
    if rounding == NEAREST:
        return near
    back = near.astype(np.float64)
    infinity = dtype(np.inf)
    if rounding == UP:
        return np.where(back < wide, np.nextafter(near, infinity), near)
    if rounding == DOWN:
        return np.where(back > wide, np.nextafter(near, -infinity), near)
    return np.where(np.abs(back) > np.abs(wide), np.nextafter(near, dtype(0)), near)


def odd_sum(a: Any, b: Any) -> Any:
    """a + b in float64, rounded to odd: an inexact sum gets an odd last bit.

    Rounding it again to a type with at least two bits less is then the same as rounding the exact sum (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd").
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    fix = (error != 0) & np.isfinite(total) & (total.view(np.int64) & 1 == 0)
    if not np.count_nonzero(fix):
        return total
    away = np.where(error > 0, np.inf, -np.inf)
    return np.where(fix, np.nextafter(total, away), total)


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of fp32 or fp16 values, in float64 rounded to odd (the product of two of them is exact there)."""
    return odd_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
