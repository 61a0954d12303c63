from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave

M32 = 0xFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    return (value & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)


def bits_of(value: int, low: int, count: int) -> int:
    return value >> low & (1 << count) - 1


# name → function of Python ints (unsigned words in, any int out, taken modulo 2**32)
WORDS: dict[str, Callable[..., int]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24) >> 32,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: signed(b) >> (a & 31),
    "v_min_u32": min,
    "v_max_u32": max,
    "v_min_i32": lambda a, b: min(signed(a), signed(b)),
    "v_max_i32": lambda a, b: max(signed(a), signed(b)),
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & M32) << (c & 31),
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
    "v_mad_u32_u16": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c,
    "v_mad_i32_i16": lambda a, b, c: signed(a, 16) * signed(b, 16) + c,
    "v_min3_u32": lambda a, b, c: min(a, b, c),
    "v_max3_i32": lambda a, b, c: max(signed(a), signed(b), signed(c)),
    "v_med3_i32": lambda a, b, c: sorted(map(signed, (a, b, c)))[1],
    "v_med3_u32": lambda a, b, c: sorted((a, b, c))[1],
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_sad_u16": lambda a, b, c: abs(bits_of(a, 0, 16) - bits_of(b, 0, 16)) + abs((a >> 16) - (b >> 16)) + c,
    "v_sad_u8": lambda a, b, c: sum(abs(bits_of(a, s, 8) - bits_of(b, s, 8)) for s in (0, 8, 16, 24)) + c,
    "v_msad_u8": lambda a, b, c: (
        sum(abs(bits_of(a, s, 8) - bits_of(b, s, 8)) for s in (0, 8, 16, 24) if bits_of(b, s, 8)) + c
    ),
    "v_lerp_u8": lambda a, b, c: sum(
        (bits_of(a, s, 8) + bits_of(b, s, 8) + bits_of(c, s, 1) >> 1) << s for s in (0, 8, 16, 24)
    ),
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_not_b32": lambda a: ~a,
    "v_mov_b32": lambda a: a,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfe_u32": lambda a, b, c: bits_of(a, b & 31, c & 31),
    "v_bfe_i32": lambda a, b, c: signed(signed(a) >> (b & 31), c & 31) if c & 31 else 0,
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_ffbh_u32": lambda a: 32 - a.bit_length() if a else M32,
    "v_ffbl_b32": lambda a: (a & -a).bit_length() - 1 if a else M32,
    "v_ffbh_i32": lambda a: 32 - (a ^ -(a >> 31) & M32).bit_length() if a not in (0, M32) else M32,
}


def operands(seed: int, lanes: int = 64) -> np.ndarray:
    """Three registers of random words, some of them with few bits, among them the ends of every range."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << 32, (3, lanes), np.uint32)
    words[:, ::3] >>= random.integers(0, 32, words[:, ::3].shape).astype(np.uint32)
    ends = np.array([0, 1, 31, 32, 0x7FFF, 0x8000, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, M32], np.uint32)
    for row in words:
        row[random.permutation(lanes)[: len(ends)]] = ends
    return words


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    function = WORDS[name]
    count = function.__code__.co_argcount if function not in (min, max) else 2
    for seed, active in ((1, None), (2, 0x5A5A_0123_4567_89AB)):
        wave = make_wave("gfx942", exec_bits=active)
        wave.v[1:4] = operands(seed)
        before = wave.v[7].copy()
        fields = {f"src{position}": f"v{1 + position}" for position in range(count)}
        execute(wave, "VOP3", name, vdst="v7", **fields)
        lanes = [function(*map(int, wave.v[1 : 1 + count, lane])) & M32 for lane in range(64)]
        np.testing.assert_array_equal(wave.v[7], np.where(wave.mask, np.array(lanes, np.uint32), before))


HALVES: dict[str, Callable[..., int]] = {
    "v_add_u16": lambda a, b: a + b,
    "v_sub_u16": lambda a, b: a - b,
    "v_mul_lo_u16": lambda a, b: a * b,
    "v_lshlrev_b16": lambda a, b: b << (a & 15),
    "v_lshrrev_b16": lambda a, b: b >> (a & 15),
    "v_ashrrev_i16": lambda a, b: signed(b, 16) >> (a & 15),
    "v_min_i16": lambda a, b: min(signed(a, 16), signed(b, 16)),
    "v_max_u16": max,
}


@pytest.mark.parametrize("name", HALVES)
def test_halves(name: str) -> None:
    """CDNA clears the upper half of the result."""
    wave = make_wave("gfx942")
    wave.v[1:4] = operands(3)
    execute(wave, "VOP2", name, vdst="v7", src0="v1", vsrc1="v2")
    lanes = [HALVES[name](int(a) & 0xFFFF, int(b) & 0xFFFF) & 0xFFFF for a, b in zip(wave.v[1], wave.v[2], strict=True)]
    np.testing.assert_array_equal(wave.v[7], np.array(lanes, np.uint32))


def test_products_of_halves_keep_the_other_half_but_for_legacy_ones() -> None:
    for name, kept in (("v_mad_u16", True), ("v_mad_legacy_u16", False)):
        wave = make_wave("gfx942")
        before = wave.v[7].copy()
        a, b, c = (wave.v[row] & np.uint32(0xFFFF) for row in (1, 2, 3))
        execute(wave, "VOP3", name, vdst="v7", src0="v1", src1="v2", src2="v3")
        wanted = (a * b + c) & 0xFFFF
        np.testing.assert_array_equal(wave.v[7], wanted | before & 0xFFFF0000 if kept else wanted)


def test_halves_of_rdna_keep_the_other_half() -> None:
    wave = make_wave("gfx1100")
    wave.v[1:4] = operands(4, 32)
    before = wave.v[7].copy()
    execute(wave, "VOP3", "v_lshlrev_b16", vdst="v7", src0=4, src1="v1", opsel=0b1010)
    np.testing.assert_array_equal(wave.v[7], before & 0xFFFF | (wave.v[1] >> 16 << 20))


CLAMPED: dict[str, tuple[Callable[..., int], int, int]] = {
    "v_add_u32": (lambda a, b: a + b, 0, M32),
    "v_sub_u32": (lambda a, b: a - b, 0, M32),
    "v_add_i32": (lambda a, b: signed(a) + signed(b), -(1 << 31), (1 << 31) - 1),
    "v_sub_i32": (lambda a, b: signed(a) - signed(b), -(1 << 31), (1 << 31) - 1),
    "v_mad_u32_u24": (lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c, 0, M32),
}


@pytest.mark.parametrize("name", CLAMPED)
def test_clamp_saturates(name: str) -> None:
    function, least, most = CLAMPED[name]
    wave = make_wave("gfx942")
    wave.v[1:4] = operands(5)
    count = function.__code__.co_argcount
    fields = {f"src{position}": f"v{1 + position}" for position in range(count)}
    execute(wave, "VOP3", name, vdst="v7", clmp=1, **fields)
    lanes = [min(max(function(*map(int, wave.v[1 : 1 + count, lane])), least), most) & M32 for lane in range(64)]
    np.testing.assert_array_equal(wave.v[7], np.array(lanes, np.uint32))


def test_what_has_no_meaning_is_refused() -> None:
    wave = make_wave("gfx942")
    for name, fields in (
        ("v_mul_lo_u32", {"clmp": 1}),
        ("v_and_b32", {"neg": 1}),
        ("v_add_u32", {"abs": 2}),
        ("v_lshlrev_b32", {"omod": 1}),
    ):
        with pytest.raises(Unmodelled):
            execute(wave, "VOP3", name, vdst="v7", src0="v1", src1="v2", **fields)


def test_scalars_and_constants_reach_all_lanes() -> None:
    wave = make_wave("gfx942")
    a = wave.v[1].copy()
    execute(wave, "VOP2", "v_add_u32", vdst="v2", src0="s7", vsrc1="v1")
    np.testing.assert_array_equal(wave.v[2], a + np.uint32(wave.s[7]))
    execute(wave, "VOP2", "v_add_u32", vdst="v2", src0=-5, vsrc1="v1")
    np.testing.assert_array_equal(wave.v[2], a - np.uint32(5))
    execute(wave, "VOP2_LIT", "v_add_u32", vdst="v2", src0=0x12345678, vsrc1="v1")
    np.testing.assert_array_equal(wave.v[2], a + np.uint32(0x12345678))
    execute(wave, "VOP2", "v_and_b32", vdst="v2", src0=1.0, vsrc1="v1")
    np.testing.assert_array_equal(wave.v[2], a & np.uint32(0x3F800000))
    execute(wave, "VOP1", "v_mov_b32", vdst="v2", src0="exec")
    assert (wave.v[2] == M32).all()
