"""Integer instructions that compute addresses, on arrays of (waves, lanes); scalars are (waves, 1). 32 bits each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
"""32-bit values, from 0 to 2^32 - 1; or truth values of lanes, for masks."""
_MASK = 0xFFFFFFFF


def signed(value: Words) -> Words:
    """Interpret values as two's complement."""
    return np.asarray(np.where(value >> 31 & 1, value - (1 << 32), value))


def _low24(value: Words) -> Words:
    return np.asarray(value & 0xFFFFFF)


def _signed24(value: Words) -> Words:
    low = _low24(value)
    return np.asarray(np.where(low >> 23 & 1, low - (1 << 24), low))


def _field(value: Words, offset: Words, width: Words) -> Words:
    return np.asarray(value >> (offset & 31) & (np.left_shift(1, width & 31) - 1))


def _signed_field(value: Words, offset: Words, width: Words) -> Words:
    low, bits = _field(value, offset, width), width & 31
    return np.asarray(np.where(low >> np.maximum(bits - 1, 0) & 1, low - np.left_shift(1, bits), low))


TWO: Mapping[str, Callable[[Words, Words], Words]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_add_nc_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_sub_nc_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_subrev_nc_u32": lambda a, b: b - a,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: signed(b) >> (a & 31),
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_mul_u32_u24": lambda a, b: _low24(a) * _low24(b),
    "v_mul_lo_u32": lambda a, b: signed(a) * signed(b),
    "v_min_u32": np.minimum,
    "v_max_u32": np.maximum,
    "v_min_i32": lambda a, b: np.minimum(signed(a), signed(b)),
    "v_max_i32": lambda a, b: np.maximum(signed(a), signed(b)),
    "s_add_i32": lambda a, b: a + b,
    "s_add_u32": lambda a, b: a + b,
    **dict.fromkeys(("s_add_co_i32", "s_add_co_u32"), lambda a, b: a + b),
    **dict.fromkeys(("s_sub_co_i32", "s_sub_co_u32"), lambda a, b: a - b),
    "s_sub_i32": lambda a, b: a - b,
    "s_sub_u32": lambda a, b: a - b,
    "s_lshl_b32": lambda a, b: a << (b & 31),
    "s_lshr_b32": lambda a, b: a >> (b & 31),
    "s_ashr_i32": lambda a, b: signed(a) >> (b & 31),
    "s_and_b32": lambda a, b: a & b,
    "s_or_b32": lambda a, b: a | b,
    "s_xor_b32": lambda a, b: a ^ b,
    "s_andn2_b32": lambda a, b: a & ~b,
    "s_and_not1_b32": lambda a, b: a & ~b,
    "s_mul_i32": lambda a, b: signed(a) * signed(b),
    "s_bfe_u32": lambda a, b: _field(a, b & 31, b >> 16 & 127),
    "s_lshl1_add_u32": lambda a, b: (a << 1) + b,
    "s_lshl2_add_u32": lambda a, b: (a << 2) + b,
    "s_lshl3_add_u32": lambda a, b: (a << 3) + b,
    "s_lshl4_add_u32": lambda a, b: (a << 4) + b,
    "s_min_u32": np.minimum,
    "s_max_u32": np.maximum,
    "s_min_i32": lambda a, b: np.minimum(signed(a), signed(b)),
    "s_max_i32": lambda a, b: np.maximum(signed(a), signed(b)),
}
"""Functions of two sources."""
ONE: Mapping[str, Callable[[Words], Words]] = {
    **dict.fromkeys(("v_mov_b32", "s_mov_b32", "s_movk_i32", "v_accvgpr_write_b32", "v_accvgpr_read_b32"), lambda a: a),
    "v_accvgpr_mov_b32": lambda a: a,
    "v_not_b32": lambda a: ~a,
    "s_not_b32": lambda a: ~a,
    "v_readfirstlane_b32": lambda a: a[:, :1],
}
"""Functions of one source."""
THREE: Mapping[str, Callable[[Words, Words, Words], Words]] = {
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & _MASK) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_mad_u32_u24": lambda a, b, c: _low24(a) * _low24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: _signed24(a) * _signed24(b) + signed(c),
    "v_bfe_u32": _field,
    "v_bfe_i32": _signed_field,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
}
"""Functions of three sources."""
COMPARE: Mapping[str, Callable[[Words, Words], Words]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lg": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def bitop3(table: int, a: Words, b: Words, c: Words) -> Words:
    """Evaluate ``v_bitop3_b32``: each bit looks up bit ``4 a + 2 b + c`` of ``table``."""
    bits = np.zeros_like(a | b | c)
    for at in range(8):
        if table >> at & 1:
            bits |= (a if at & 4 else ~a) & (b if at & 2 else ~b) & (c if at & 1 else ~c)
    return bits


def mbcnt(name: str, mask: Words, value: Words, lanes: int) -> Words | None:
    """``v_mbcnt_lo`` and ``_hi``: ``value`` plus the lanes below each lane; None unless the mask has all lanes."""
    if not (mask == _MASK).all():
        return None
    return value + np.clip(np.arange(lanes) - (32 if "_hi_" in name else 0), 0, 32)


def wrapped(value: Words) -> Words:
    """Wrap values to 32 bits."""
    return np.asarray(value, np.int64) & _MASK
