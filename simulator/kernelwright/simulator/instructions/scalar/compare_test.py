from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.testing import instructions as testing
from kernelwright.simulator.testing.instructions import run

EDGES = [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_8000, 0xFFFF_FFFF]
assemble, make_wave = cache(testing.assemble), cache(testing.make_wave)
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFF_FFFF))
FUNCTIONS = {"eq": np.equal, "lg": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less}
FUNCTIONS["le"] = np.less_equal


@pytest.mark.parametrize("relation", FUNCTIONS)
@pytest.mark.parametrize("kind", ["i32", "u32"])
def test_comparisons(relation: str, kind: str) -> None:
    dtype = np.dtype(kind[0] + "4")

    @settings(deadline=None, max_examples=40)
    @given(words, words)
    def check(a: int, b: int) -> None:
        wave = make_wave("gfx942")
        wave.s[4], wave.s[8] = a, b
        run(wave, assemble("gfx942", "SOPC", f"s_cmp_{relation}_{kind}", ssrc0="s4", ssrc1="s8"))
        assert wave.scc == FUNCTIONS[relation](np.uint32(a).view(dtype), np.uint32(b).view(dtype))

    check()


@pytest.mark.parametrize("relation", FUNCTIONS)
@pytest.mark.parametrize("kind", ["i32", "u32"])
def test_comparisons_with_16_bit_constants(relation: str, kind: str) -> None:
    dtype = np.dtype(kind[0] + "4")

    @settings(deadline=None, max_examples=40)
    @given(words, st.integers(0, 0xFFFF))
    def check(a: int, constant: int) -> None:
        wave = make_wave("gfx1100")
        wave.s[4] = a
        run(wave, assemble("gfx1100", "SOPK", f"s_cmpk_{relation}_{kind}", sdst="s4", simm16=constant))
        extended = np.uint16(constant).view(kind[0] + "2").astype(dtype)
        assert wave.scc == FUNCTIONS[relation](np.uint32(a).view(dtype), extended)
        assert wave.s[4] == a

    check()


@settings(deadline=None, max_examples=40)
@given(words, words, words)
def test_64_bit_equality(a: int, b: int, high: int) -> None:
    wave = make_wave("gfx942")
    wave.s[4:6], wave.s[8:10] = [a, high], [b, high]
    run(wave, assemble("gfx942", "SOPC", "s_cmp_eq_u64", ssrc0="s4", ssrc1="s8"))
    assert wave.scc == int(a == b)
    run(wave, assemble("gfx942", "SOPC", "s_cmp_lg_u64", ssrc0="s4", ssrc1="s8"))
    assert wave.scc == int(a != b)
    wave.s[9] = high ^ 1
    run(wave, assemble("gfx942", "SOPC", "s_cmp_lg_u64", ssrc0="s4", ssrc1="s8"))
    assert wave.scc == 1


@settings(deadline=None, max_examples=40)
@given(words, st.integers(0, 255))
def test_bit_tests(value: int, bit: int) -> None:
    wave = make_wave("gfx942")
    wave.s[4], wave.s[5], wave.s[8] = value, value ^ 0xFFFF_FFFF, bit
    for name, expected in (
        ("s_bitcmp0_b32", format(value, "032b")[::-1][bit % 32] == "0"),
        ("s_bitcmp1_b32", format(value, "032b")[::-1][bit % 32] == "1"),
        ("s_bitcmp1_b64", format(value | wave.s[5] << 32, "064b")[::-1][bit % 64] == "1"),
    ):
        run(wave, assemble("gfx942", "SOPC", name, ssrc0="s4", ssrc1="s8"))
        assert wave.scc == int(expected), name


@settings(deadline=None, max_examples=40)
@given(words, st.integers(0, 0xFFFF), st.integers(0, 1))
def test_constants_moved_added_and_multiplied(a: int, constant: int, scc: int) -> None:
    number = int(np.uint16(constant).view(np.int16))
    signed = int(np.uint32(a).view(np.int32))
    for name, expected, flag in (
        ("s_movk_i32", number, scc),
        ("s_cmovk_i32", number if scc else a, scc),
        ("s_addk_i32", signed + number, int(not -(1 << 31) <= signed + number < 1 << 31)),
        ("s_mulk_i32", signed * number, scc),
    ):
        wave = make_wave("gfx942")
        wave.s[4], wave.scc = a, scc
        run(wave, assemble("gfx942", "SOPK", name, sdst="s4", simm16=constant))
        assert (wave.s[4], wave.scc) == (expected & 0xFFFF_FFFF, flag), name
