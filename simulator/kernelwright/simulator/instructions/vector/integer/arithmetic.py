"""Lane-wise integer arithmetic and shifts of up to 32 bits.

Clamping saturates to the range of the result's type (CDNA3 ISA guide, "Integer clamp").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.instructions.vector.lanewise import Op, lanewise
from kernelwright.simulator.machine.operands import DTYPES

Function = Callable[..., Any]


def saturating(function: Function, kind: str) -> Function:
    """The function on 64-bit integers, saturated to the range of ``kind``."""
    limits = np.iinfo(DTYPES[kind])

    def apply(*values: Any) -> Any:
        wide = function(*[value.astype(np.int64) for value in values])
        return np.clip(wide, limits.min, limits.max).astype(limits.dtype)

    return apply


def arithmetic(function: Function, kind: str, reverse: bool = False) -> Op:
    """A sum or difference, which wraps or saturates."""
    return Op(function, kind, (kind, kind), clamped=saturating(function, kind), reverse=reverse)


def multiply_high(kind: str) -> Function:
    """Bits 63:32 of the 64-bit product."""
    wide: Any = np.uint64 if kind == "u32" else np.int64
    shift, narrow = wide(32), DTYPES[kind]
    return lambda a, b: (a.astype(wide) * b.astype(wide) >> shift).astype(narrow)


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    """a * b + c."""
    return a * b + c


def difference_sum(a: Any, b: Any, c: Any) -> Any:
    """|a - b| + c of unsigned numbers."""
    return np.maximum(a, b) - np.minimum(a, b) + c


def _wide_mad(kind: str, part: str) -> Op:
    """16-bit factors, 32-bit sum."""
    dtype = DTYPES[kind]
    return Op(lambda a, b, c: a.astype(dtype) * b.astype(dtype) + c, kind, (part, part, kind))


_ADD_SUB: dict[str, tuple[Any, ...]] = {
    "v_add_u32": (np.add, "u32"),
    "v_sub_u32": (np.subtract, "u32"),
    "v_subrev_u32": (np.subtract, "u32", True),
    "v_add_i32": (np.add, "i32"),
    "v_sub_i32": (np.subtract, "i32"),
    "v_add_u16": (np.add, "u16"),
    "v_sub_u16": (np.subtract, "u16"),
    "v_subrev_u16": (np.subtract, "u16", True),
    "v_add_i16": (np.add, "i16"),
    "v_sub_i16": (np.subtract, "i16"),
}


def _no_carry(name: str) -> str:
    """RDNA's name of a sum without carry."""
    verb, kind = name.removeprefix("v_").split("_")
    return f"v_{verb}_nc_{kind}"


SUMS = {name: arithmetic(*how) for name, how in _ADD_SUB.items()}
SUMS |= {_no_carry(name): op for name, op in SUMS.items() if name != "v_subrev_u16"}

SHIFTS = {
    "v_lshlrev_b32": Op(np.left_shift, "u32", ("u5", "u32"), reverse=True),
    "v_lshrrev_b32": Op(np.right_shift, "u32", ("u5", "u32"), reverse=True),
    "v_ashrrev_i32": Op(np.right_shift, "i32", ("i5", "i32"), reverse=True),
    "v_lshlrev_b16": Op(np.left_shift, "u16", ("u4", "u16"), reverse=True),
    "v_lshrrev_b16": Op(np.right_shift, "u16", ("u4", "u16"), reverse=True),
    "v_ashrrev_i16": Op(np.right_shift, "i16", ("i4", "i16"), reverse=True),
}

PRODUCTS = {
    "v_mul_lo_u32": Op(np.multiply, "u32", ("u32", "u32")),
    "v_mul_hi_u32": Op(multiply_high("u32"), "u32", ("u32", "u32")),
    "v_mul_hi_i32": Op(multiply_high("i32"), "i32", ("i32", "i32")),
    "v_mul_lo_u16": Op(np.multiply, "u16", ("u16", "u16")),
    "v_mul_u32_u24": Op(np.multiply, "u32", ("u24", "u24")),
    "v_mul_i32_i24": Op(np.multiply, "i32", ("i24", "i24")),
    "v_mul_hi_u32_u24": Op(multiply_high("u32"), "u32", ("u24", "u24")),
    "v_mul_hi_i32_i24": Op(multiply_high("i32"), "i32", ("i24", "i24")),
    "v_mad_u32_u24": Op(np.multiply, "u32", ("u24", "u24", "u32"), np.add, saturating(multiply_add, "u32")),
    "v_mad_i32_i24": Op(np.multiply, "i32", ("i24", "i24", "i32"), np.add, saturating(multiply_add, "i32")),
    "v_mad_u16": Op(multiply_add, "u16", ("u16", "u16", "u16"), clamped=saturating(multiply_add, "u16")),
    "v_mad_i16": Op(multiply_add, "i16", ("i16", "i16", "i16"), clamped=saturating(multiply_add, "i16")),
    "v_mad_legacy_u16": Op(multiply_add, "u16", ("u16", "u16", "u16"), clamped=saturating(multiply_add, "u16")),
    "v_mad_legacy_i16": Op(multiply_add, "i16", ("i16", "i16", "i16"), clamped=saturating(multiply_add, "i16")),
    "v_mad_u32_u16": _wide_mad("u32", "u16"),
    "v_mad_i32_i16": _wide_mad("i32", "i16"),
}

CHAINS = {
    "v_add3_u32": Op(np.add, "u32", ("u32", "u32", "u32"), np.add),
    "v_add_lshl_u32": Op(np.add, "u32", ("u32", "u32", "u5"), np.left_shift),
    "v_lshl_add_u32": Op(np.left_shift, "u32", ("u32", "u5", "u32"), np.add),
    "v_xad_u32": Op(np.bitwise_xor, "u32", ("u32", "u32", "u32"), np.add),
}


def _extremes(kind: str) -> dict[str, Op]:
    """Minimum, maximum, their three-source forms, the median and the two combinations."""
    two, three = (kind, kind), (kind, kind, kind)
    table = {
        f"v_min_{kind}": Op(np.minimum, kind, two),
        f"v_max_{kind}": Op(np.maximum, kind, two),
        f"v_min3_{kind}": Op(np.minimum, kind, three, np.minimum),
        f"v_max3_{kind}": Op(np.maximum, kind, three, np.maximum),
        f"v_med3_{kind}": Op(median, kind, three),
    }
    if kind.endswith("32"):
        table[f"v_minmax_{kind}"] = Op(np.minimum, kind, three, np.maximum)
        table[f"v_maxmin_{kind}"] = Op(np.maximum, kind, three, np.minimum)
    return table


def median(a: Any, b: Any, c: Any) -> Any:
    """The median of three."""
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


EXTREMES = {name: op for kind in ("u32", "i32", "u16", "i16") for name, op in _extremes(kind).items()}


def _bytes_of(words: Any) -> Any:
    return np.ascontiguousarray(words).view(np.uint8).reshape(-1, 4).astype(np.uint32)


def sum_byte_differences(a: Any, b: Any, c: Any) -> Any:
    """Sum of the absolute differences of four bytes, and c."""
    x, y = _bytes_of(a), _bytes_of(b)
    return (np.maximum(x, y) - np.minimum(x, y)).sum(axis=1, dtype=np.uint32) + c


def _sad_u16(a: Any, b: Any, c: Any) -> Any:
    low, shift = np.uint32(0xFFFF), np.uint32(16)
    return difference_sum(a & low, b & low, difference_sum(a >> shift, b >> shift, c))


def _lerp_u8(a: Any, b: Any, c: Any) -> Any:
    """Mean of bytes, rounded up if the byte of c is odd."""
    mean = (_bytes_of(a) + _bytes_of(b) + (_bytes_of(c) & np.uint32(1))) >> np.uint32(1)
    return mean.astype(np.uint8).view(np.uint32).reshape(-1)


def _masked_differences(a: Any, b: Any, c: Any) -> Any:
    """As :func:`sum_byte_differences`, ignoring bytes where b is 0."""
    x, y = _bytes_of(a), _bytes_of(b)
    return np.where(y == 0, np.uint32(0), np.maximum(x, y) - np.minimum(x, y)).sum(axis=1, dtype=np.uint32) + c


DIFFERENCES = {
    "v_msad_u8": Op(_masked_differences, "u32", ("u32", "u32", "u32")),
    "v_sad_u32": Op(difference_sum, "u32", ("u32", "u32", "u32")),
    "v_sad_u16": Op(_sad_u16, "u32", ("u32", "u32", "u32")),
    "v_sad_u8": Op(sum_byte_differences, "u32", ("u32", "u32", "u32")),
    "v_sad_hi_u8": Op(
        lambda a, b, c: (sum_byte_differences(a, b, np.uint32(0)) << np.uint32(16)) + c, "u32", ("u32", "u32", "u32")
    ),
    "v_lerp_u8": Op(_lerp_u8, "u32", ("u32", "u32", "u32")),
}

for _table in (SUMS, SHIFTS, PRODUCTS, CHAINS, EXTREMES, DIFFERENCES):
    lanewise(_table)
