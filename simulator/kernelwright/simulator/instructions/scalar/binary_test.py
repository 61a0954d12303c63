from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelwright.simulator.testing import instructions as testing
from kernelwright.simulator.testing.instructions import run

EDGES = [0, 1, 2, 31, 32, 63, 64, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_8000, 0x0010_0004, 0x0020_001F]
assemble, make_wave = cache(testing.assemble), cache(testing.make_wave)
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFF_FFFF))
pairs = st.builds(lambda low, high: low | high << 32, words, words)


def binary(name: str, a: int, b: int, scc: int, bits: tuple[int, int, int], arch: str) -> tuple[int, int]:
    """Result and SCC of s[20] = s[4] ? s[8], whose widths are ``bits``."""
    wave = make_wave(arch)
    wave.scc = scc
    wave.s[4], wave.s[5] = a & 0xFFFF_FFFF, a >> 32 if bits[1] == 64 else 0xDEAD
    wave.s[8], wave.s[9] = b & 0xFFFF_FFFF, b >> 32 if bits[2] == 64 else 0xBEEF
    untouched = wave.s[21]
    run(wave, assemble(arch, "SOP2", name, sdst="s20", ssrc0="s4", ssrc1="s8"))
    if bits[0] == 32:
        assert wave.s[21] == untouched
        return wave.s[20], wave.scc
    return wave.s[20] | wave.s[21] << 32, wave.scc


def i32(word: int) -> int:
    return int(np.uint32(word).view(np.int32))


def i64(word: int) -> int:
    return int(np.uint64(word).view(np.int64))


def low(value: int) -> int:
    return int(np.array(value & (1 << 64) - 1, np.uint64).astype(np.uint32))


# name → (result, SCC) of (a, b, scc), from exact integers and NumPy's types.
SUMS: dict[str, Callable[[int, int, int], tuple[int, bool]]] = {
    "s_add_u32": lambda a, b, scc: (low(a + b), a + b > 0xFFFF_FFFF),
    "s_sub_u32": lambda a, b, scc: (low(a - b), b > a),
    "s_addc_u32": lambda a, b, scc: (low(a + b + scc), a + b + scc > 0xFFFF_FFFF),
    "s_subb_u32": lambda a, b, scc: (low(a - b - scc), b + scc > a),
    "s_add_i32": lambda a, b, scc: (low(a + b), i32(a) + i32(b) != i32(low(a + b))),
    "s_sub_i32": lambda a, b, scc: (low(a - b), i32(a) - i32(b) != i32(low(a - b))),
    "s_min_i32": lambda a, b, scc: (low(min(i32(a), i32(b))), i32(a) < i32(b)),
    "s_max_i32": lambda a, b, scc: (low(max(i32(a), i32(b))), i32(a) >= i32(b)),
    "s_min_u32": lambda a, b, scc: (min(a, b), a < b),
    "s_max_u32": lambda a, b, scc: (max(a, b), a >= b),
    "s_lshl3_add_u32": lambda a, b, scc: (low(a * 8 + b), a * 8 + b > 0xFFFF_FFFF),
    "s_lshl1_add_u32": lambda a, b, scc: (low(a * 2 + b), a * 2 + b > 0xFFFF_FFFF),
}
RENAMED = {"s_add_u32": "s_add_co_u32", "s_sub_i32": "s_sub_co_i32", "s_addc_u32": "s_add_co_ci_u32"}
RENAMED |= {"s_subb_u32": "s_sub_co_ci_u32", "s_sub_u32": "s_sub_co_u32", "s_add_i32": "s_add_co_i32"}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_sums_and_extremes_set_scc(name: str, arch: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(words, words, st.integers(0, 1))
    @example(0xFFFF_FFFF, 0, 1)
    @example(0, 0xFFFF_FFFF, 1)
    @example(0x8000_0000, 0x8000_0000, 0)
    def check(a: int, b: int, scc: int) -> None:
        chosen = RENAMED.get(name, name) if arch == "gfx1201" else name
        result, carry = SUMS[name](a, b, scc)
        assert binary(chosen, a, b, scc, (32, 32, 32), arch) == (result, int(carry))

    check()


@settings(deadline=None, max_examples=40)
@given(pairs, pairs)
def test_a_carry_chain_adds_and_subtracts_64_bits(a: int, b: int) -> None:
    for first, second, sign in (("s_add_u32", "s_addc_u32", 1), ("s_sub_u32", "s_subb_u32", -1)):
        wave = make_wave("gfx942")
        wave.s[4:6] = [a & 0xFFFF_FFFF, a >> 32]
        wave.s[8:10] = [b & 0xFFFF_FFFF, b >> 32]
        run(wave, assemble("gfx942", "SOP2", first, sdst="s20", ssrc0="s4", ssrc1="s8"))
        run(wave, assemble("gfx942", "SOP2", second, sdst="s21", ssrc0="s5", ssrc1="s9"))
        exact = a + sign * b
        assert wave.s[20] | wave.s[21] << 32 == exact % (1 << 64)
        assert wave.scc == int(not 0 <= exact < 1 << 64)


def field(a: int, control: int, bits: int, signed: bool) -> int:
    """Bit field extract, on text: offset and width count from the right."""
    offset, width = control % bits, control >> 16 & 0x7F
    extended = (i32(a) if bits == 32 else i64(a)) if signed else a
    text = format(extended & (1 << 256) - 1, "0256b")[::-1][offset : offset + width]
    if not text:
        return 0
    value = int(text[::-1], 2)
    if signed and text[-1] == "1":
        value -= 1 << len(text)
    return value & (1 << bits) - 1


BITS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "s_and_b32": (32, lambda a, b: int(np.bitwise_and(np.uint32(a), np.uint32(b)))),
    "s_or_b32": (32, lambda a, b: int(np.bitwise_or(np.uint32(a), np.uint32(b)))),
    "s_xor_b64": (64, lambda a, b: int(np.bitwise_xor(np.uint64(a), np.uint64(b)))),
    "s_nand_b32": (32, lambda a, b: int(np.invert(np.uint32(a & b)))),
    "s_nor_b64": (64, lambda a, b: int(np.invert(np.uint64(a | b)))),
    "s_xnor_b32": (32, lambda a, b: int(np.invert(np.uint32(a ^ b)))),
    "s_andn2_b64": (64, lambda a, b: int(np.uint64(a) & np.invert(np.uint64(b)))),
    "s_orn2_b32": (32, lambda a, b: int(np.uint32(a) | np.invert(np.uint32(b)))),
}


@pytest.mark.parametrize("name", BITS)
def test_logic_sets_scc_if_any_bit_is(name: str) -> None:
    bits, function = BITS[name]

    @settings(deadline=None, max_examples=40)
    @given(pairs if bits == 64 else words, pairs if bits == 64 else words)
    def check(a: int, b: int) -> None:
        expected = function(a, b)
        assert binary(name, a, b, 0, (bits, bits, bits), "gfx942") == (expected, int(expected != 0))
        assert binary(name, a, b, 1, (bits, bits, bits), "gfx942") == (expected, int(expected != 0))

    check()


SHIFTS: dict[str, tuple[int, Callable[[int, int], Any]]] = {
    "s_lshl_b32": (32, lambda a, b: np.left_shift(np.uint32(a), np.uint32(b % 32))),
    "s_lshr_b32": (32, lambda a, b: np.right_shift(np.uint32(a), np.uint32(b % 32))),
    "s_ashr_i32": (32, lambda a, b: np.right_shift(np.uint32(a).view(np.int32), np.int32(b % 32)).view(np.uint32)),
    "s_lshl_b64": (64, lambda a, b: np.left_shift(np.uint64(a), np.uint64(b % 64))),
    "s_lshr_b64": (64, lambda a, b: np.right_shift(np.uint64(a), np.uint64(b % 64))),
    "s_ashr_i64": (64, lambda a, b: np.right_shift(np.uint64(a).view(np.int64), np.int64(b % 64)).view(np.uint64)),
    "s_bfe_u32": (32, lambda a, b: field(a, b, 32, False)),
    "s_bfe_i32": (32, lambda a, b: field(a, b, 32, True)),
    "s_bfe_u64": (64, lambda a, b: field(a, b, 64, False)),
    "s_bfe_i64": (64, lambda a, b: field(a, b, 64, True)),
    "s_absdiff_i32": (32, lambda a, b: np.abs(np.uint32(a).view(np.int32) - np.uint32(b).view(np.int32)).view("u4")),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_and_fields(name: str) -> None:
    bits, function = SHIFTS[name]

    @settings(deadline=None, max_examples=40)
    @given(pairs if bits == 64 else words, words, st.integers(0, 1))
    @example(0x8000_0001, 0x20_0000, 0)
    @example(0xFFFF_FFFF, 31 | 4 << 16, 1)
    def check(a: int, b: int, scc: int) -> None:
        with np.errstate(over="ignore"):
            expected = int(function(a, b))
        assert binary(name, a, b, scc, (bits, bits, 32), "gfx942") == (expected, int(expected != 0))

    check()


QUIET: dict[str, tuple[tuple[int, int, int], Callable[[int, int], int], str]] = {
    "s_mul_i32": ((32, 32, 32), lambda a, b: low(i32(a) * i32(b)), "gfx942"),
    "s_mul_hi_u32": ((32, 32, 32), lambda a, b: a * b // (1 << 32), "gfx942"),
    "s_mul_hi_i32": ((32, 32, 32), lambda a, b: low(i32(a) * i32(b) // (1 << 32)), "gfx942"),
    "s_bfm_b32": ((32, 32, 32), lambda a, b: low(sum(1 << bit for bit in range(a % 32)) << b % 32), "gfx942"),
    "s_pack_ll_b32_b16": ((32, 32, 32), lambda a, b: a % 65536 + b % 65536 * 65536, "gfx942"),
    "s_pack_lh_b32_b16": ((32, 32, 32), lambda a, b: a % 65536 + b // 65536 * 65536, "gfx942"),
    "s_pack_hh_b32_b16": ((32, 32, 32), lambda a, b: a // 65536 + b // 65536 * 65536, "gfx942"),
    "s_pack_hl_b32_b16": ((32, 32, 32), lambda a, b: a // 65536 + b % 65536 * 65536, "gfx1100"),
    "s_mul_u64": ((64, 64, 64), lambda a, b: a * b % (1 << 64), "gfx1201"),
    "s_add_nc_u64": ((64, 64, 64), lambda a, b: (a + b) % (1 << 64), "gfx1201"),
    "s_sub_nc_u64": ((64, 64, 64), lambda a, b: (a - b) % (1 << 64), "gfx1201"),
}


@pytest.mark.parametrize("name", QUIET)
def test_products_and_packing_leave_scc_alone(name: str) -> None:
    bits, function, arch = QUIET[name]

    @settings(deadline=None, max_examples=40)
    @given(pairs if bits[1] == 64 else words, pairs if bits[2] == 64 else words, st.integers(0, 1))
    def check(a: int, b: int, scc: int) -> None:
        assert binary(name, a, b, scc, bits, arch) == (function(a, b), scc)

    check()


@pytest.mark.parametrize("scc", [0, 1])
def test_selection(scc: int) -> None:
    assert binary("s_cselect_b32", 5, 6, scc, (32, 32, 32), "gfx942") == (5 if scc else 6, scc)
    a, b = 0x1_0000_0002, 0x3_0000_0004
    assert binary("s_cselect_b64", a, b, scc, (64, 64, 64), "gfx942") == (a if scc else b, scc)


def test_constants_and_special_registers_as_operands() -> None:
    wave = make_wave("gfx942")
    run(wave, assemble("gfx942", "SOP2", "s_add_u32", sdst="s20", ssrc0=-16, ssrc1=16))
    assert (wave.s[20], wave.scc) == (0, 1)
    run(wave, assemble("gfx942", "SOP2", "s_or_b32", sdst="m0", ssrc0=0x12345678, ssrc1=1.0))
    assert wave.s[124] == 0x12345678 | 0x3F800000
    run(wave, assemble("gfx942", "SOP2", "s_and_b64", sdst="exec", ssrc0="exec", ssrc1=0x5555))
    assert wave.exec == 0x5555 and not wave.full and wave.mask[:4].tolist() == [True, False, True, False]
    wave = make_wave("gfx1201")
    run(wave, assemble("gfx1201", "SOP2", "s_add_co_u32", sdst="s124", ssrc0=3, ssrc1="s124"))
    assert wave.read_scalar(124) == 0  # null
