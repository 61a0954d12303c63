from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.testing import instructions as testing
from kernelwright.simulator.testing.instructions import run

EDGES = [0, 1, 2, 0x80, 0x8000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_FF80, 0x00FF_0000]
assemble, make_wave = cache(testing.assemble), cache(testing.make_wave)
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFF_FFFF))
pairs = st.builds(lambda low, high: low | high << 32, words, words)
M32 = 0xFFFF_FFFF


def unary(name: str, a: int, scc: int, result: int, arch: str = "gfx942") -> tuple[int, int]:
    wave = make_wave(arch)
    wave.scc, wave.s[4], wave.s[5] = scc, a & M32, a >> 32
    run(wave, assemble(arch, "SOP1", name, sdst="s20", ssrc0="s4"))
    return (wave.s[20] | wave.s[21] << 32 if result == 64 else wave.s[20]), wave.scc


def text(a: int, bits: int) -> str:
    """Bits from the lowest on."""
    return format(a, f"0{bits}b")[::-1]


def first(bits: str, wanted: str) -> int:
    return bits.find(wanted) & M32


def sign_run(a: int, bits: int) -> int:
    ordered = text(a, bits)[::-1]
    return first(ordered, "1" if ordered[0] == "0" else "0")


QUIET: dict[str, tuple[int, int, Callable[[int], int], str]] = {
    "s_mov_b32": (32, 32, lambda a: a, "gfx942"),
    "s_mov_b64": (64, 64, lambda a: a, "gfx942"),
    "s_brev_b32": (32, 32, lambda a: int(text(a, 32), 2), "gfx942"),
    "s_brev_b64": (64, 64, lambda a: int(text(a, 64), 2), "gfx942"),
    "s_ff0_i32_b32": (32, 32, lambda a: first(text(a, 32), "0"), "gfx942"),
    "s_ff1_i32_b32": (32, 32, lambda a: first(text(a, 32), "1"), "gfx942"),
    "s_ff1_i32_b64": (64, 32, lambda a: first(text(a, 64), "1"), "gfx942"),
    "s_ctz_i32_b32": (32, 32, lambda a: first(text(a, 32), "1"), "gfx1100"),
    "s_flbit_i32_b32": (32, 32, lambda a: first(text(a, 32)[::-1], "1"), "gfx942"),
    "s_flbit_i32_b64": (64, 32, lambda a: first(text(a, 64)[::-1], "1"), "gfx942"),
    "s_clz_i32_u32": (32, 32, lambda a: first(text(a, 32)[::-1], "1"), "gfx1201"),
    "s_flbit_i32": (32, 32, lambda a: sign_run(a, 32), "gfx942"),
    "s_flbit_i32_i64": (64, 32, lambda a: sign_run(a, 64), "gfx942"),
    "s_cls_i32": (32, 32, lambda a: sign_run(a, 32), "gfx1100"),
    "s_sext_i32_i8": (32, 32, lambda a: int(np.uint8(a & 255).view(np.int8)) & M32, "gfx942"),
    "s_sext_i32_i16": (32, 32, lambda a: int(np.uint16(a & 65535).view(np.int16)) & M32, "gfx942"),
    "s_bitreplicate_b64_b32": (32, 64, lambda a: int("".join(2 * bit for bit in text(a, 32))[::-1], 2), "gfx942"),
}
COUNTED: dict[str, tuple[int, int, Callable[[int], int]]] = {
    "s_not_b32": (32, 32, lambda a: int(np.invert(np.uint32(a)))),
    "s_not_b64": (64, 64, lambda a: int(np.invert(np.uint64(a)))),
    "s_bcnt0_i32_b32": (32, 32, lambda a: text(a, 32).count("0")),
    "s_bcnt1_i32_b32": (32, 32, lambda a: text(a, 32).count("1")),
    "s_bcnt0_i32_b64": (64, 32, lambda a: text(a, 64).count("0")),
    "s_bcnt1_i32_b64": (64, 32, lambda a: text(a, 64).count("1")),
    "s_abs_i32": (32, 32, lambda a: a if a < 1 << 31 else -a & M32),
    "s_quadmask_b32": (32, 32, lambda a: sum(("1" in text(a, 32)[4 * q : 4 * q + 4]) << q for q in range(8))),
    "s_wqm_b32": (32, 32, lambda a: sum(15 << 4 * q for q in range(8) if "1" in text(a, 32)[4 * q : 4 * q + 4])),
}


@pytest.mark.parametrize("name", QUIET)
def test_moves_and_searches_leave_scc_alone(name: str) -> None:
    bits, result, function, arch = QUIET[name]

    @settings(deadline=None, max_examples=40)
    @given(pairs if bits == 64 else words, st.integers(0, 1))
    def check(a: int, scc: int) -> None:
        assert unary(name, a, scc, result, arch) == (function(a), scc)

    check()


@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_complements_set_scc(name: str) -> None:
    bits, result, function = COUNTED[name]

    @settings(deadline=None, max_examples=40)
    @given(pairs if bits == 64 else words, st.integers(0, 1))
    def check(a: int, scc: int) -> None:
        expected = function(a)
        assert unary(name, a, scc, result) == (expected, int(expected != 0))

    check()


@pytest.mark.parametrize("scc", [0, 1])
def test_conditional_moves(scc: int) -> None:
    before = make_wave("gfx942").s[20]
    assert unary("s_cmov_b32", 7, scc, 32) == (7 if scc else before, scc)


@settings(deadline=None, max_examples=40)
@given(words, st.integers(0, 255))
def test_single_bits(value: int, which: int) -> None:
    for name, expected in (("s_bitset0_b32", value & ~(1 << which % 32)), ("s_bitset1_b32", value | 1 << which % 32)):
        wave = make_wave("gfx942")
        wave.s[20], wave.s[4] = value, which
        run(wave, assemble("gfx942", "SOP1", name, sdst="s20", ssrc0="s4"))
        assert wave.s[20] == expected


SAVES: dict[str, Callable[[int, int, int], int]] = {
    "and": lambda s, e, ones: s & e,
    "or": lambda s, e, ones: s | e,
    "xor": lambda s, e, ones: s ^ e,
    "andn2": lambda s, e, ones: s & (ones ^ e),
    "andn1": lambda s, e, ones: (ones ^ s) & e,
    "and_not1": lambda s, e, ones: s & (ones ^ e),
    "and_not0": lambda s, e, ones: (ones ^ s) & e,
}


@pytest.mark.parametrize(
    ("arch", "name"),
    [("gfx942", name) for name in ("and", "or", "xor", "andn2", "andn1")]
    + [("gfx1100", name) for name in ("and", "or", "and_not1", "and_not0")],
)
def test_logic_on_exec_saves_the_old_mask(arch: str, name: str) -> None:
    bits = 64 if arch == "gfx942" else 32
    ones = (1 << bits) - 1

    @settings(deadline=None, max_examples=40)
    @given(pairs, pairs)
    def check(source: int, mask: int) -> None:
        source, mask = source & ones, mask & ones
        wave = make_wave(arch)
        wave.set_exec(mask)
        wave.s[4], wave.s[5] = source & M32, source >> 32
        run(wave, assemble(arch, "SOP1", f"s_{name}_saveexec_b{bits}", sdst="s20", ssrc0="s4"))
        assert wave.s[20] | (wave.s[21] << 32 if bits == 64 else 0) == mask
        assert wave.exec == SAVES[name](source, mask, ones)
        assert wave.scc == int(wave.exec != 0)
        assert wave.mask.tolist() == [wave.exec >> lane & 1 == 1 for lane in range(bits)]

    check()


def test_writing_exec_returns_the_new_mask() -> None:
    wave = testing.make_wave("gfx942", exec_bits=0xF0F0)
    wave.s[4:6] = [0xFF00, 0]
    run(wave, assemble("gfx942", "SOP1", "s_andn2_wrexec_b64", sdst="s20", ssrc0="s4"))
    assert wave.exec == wave.s[20] == 0x0F00 and wave.scc == 1
