"""SDWA (CDNA's sub-dword addressing): the byte or word of a register that an instruction reads or writes.

Source: GCN/CDNA ISA guides, "SDWA": selectors 0-3 are bytes, 4 and 5 words, 6 the whole register; the rest is set to
zero (0), to the sign of the written part (1), or kept (2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.errors import Unmodelled

_WHOLE = 6
_PAD, _SIGN, _KEEP = 0, 1, 2

Words = Any  # uint32 (lanes,)


def _field(selector: int) -> tuple[int, int]:
    """(lowest bit, number of bits)."""
    if selector > _WHOLE:
        raise Unmodelled(f"SDWA selector {selector}")
    return (8 * selector, 8) if selector < 4 else (16 * (selector - 4), 16)


def select(selector: int, signed: bool) -> Callable[[Words], Words] | None:
    """Return a function from the register's words to the operand, extended to 32 bits; None for the register itself."""
    if selector == _WHOLE:
        return None
    low, bits = _field(selector)
    left, right = np.uint32(32 - bits - low), 32 - bits
    if signed:
        return lambda words: ((words << left).view(np.int32) >> np.int32(right)).view(np.uint32)
    down, mask = np.uint32(low), np.uint32((1 << bits) - 1)
    return lambda words: words >> down & mask


def deposit(selector: int, unused: int) -> Callable[[Words, Words], Words] | None:
    """Return a function from (result, old words) to the new words; None if the result replaces the register."""
    if selector == _WHOLE:
        return None
    if unused not in (_PAD, _SIGN, _KEEP):
        raise Unmodelled(f"SDWA dst_unused {unused}")
    low, bits = _field(selector)
    up, mask = np.uint32(low), np.uint32((1 << bits) - 1)
    keep = np.uint32(~(((1 << bits) - 1) << low) & 0xFFFFFFFF)
    if unused == _PAD:
        return lambda result, old: (result & mask) << up
    if unused == _KEEP:
        return lambda result, old: (old & keep) | (result & mask) << up
    left, right = np.uint32(32 - bits), np.int32(32 - bits - low)
    clear = np.uint32(0xFFFFFFFF << low & 0xFFFFFFFF)
    return lambda result, old: ((result << left).view(np.int32) >> right).view(np.uint32) & clear
