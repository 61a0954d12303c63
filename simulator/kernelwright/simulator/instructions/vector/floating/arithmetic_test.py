from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.code.decode import decode_one
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.vector.floating.arithmetic import fused_double, fused_half, fused_single
from kernelwright.simulator.testing.instructions import assemble, encode, execute, make_wave, run

TYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
HALVES = st.floats(width=16, allow_nan=False, allow_infinity=False)
# Modes: rounding of fp32 and of fp16 in bits 1:0 and 3:2, denormals kept.
UP, DOWN, ZERO = 0b0101, 0b1010, 0b1111
DIRECTED = pytest.mark.parametrize("rounding", [UP, DOWN, ZERO])


def nasty(kind: str, seed: int, count: int = 64) -> Any:
    """Random bits, with zeros, ones, infinities, NaNs and denormals among them."""
    random = np.random.default_rng(seed)
    size = np.dtype(TYPES[kind]).itemsize
    values = random.integers(0, 1 << 8 * size, count, f"u{size}", endpoint=False).view(TYPES[kind])
    tiny = np.finfo(TYPES[kind]).smallest_subnormal
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, tiny, -3 * tiny]
    places = random.permutation(count)[: 2 * len(special)]
    values[places] = np.array([*special, *random.permutation(special)], TYPES[kind])
    return values


def rounded(exact: Fraction, kind: str, rounding: int) -> float:
    """The neighbour of a rational number that a directed mode wants, found by comparing rational numbers."""
    dtype = TYPES[kind]
    near = dtype(float(exact))
    back = Fraction(float(near))
    if back == exact:
        return float(near)
    down, up = (near, np.nextafter(near, dtype(np.inf))) if back < exact else (np.nextafter(near, dtype(-np.inf)), near)
    toward_zero = down if exact > 0 else up
    return float({UP: up, DOWN: down, ZERO: toward_zero}[rounding])


def put(wave: Any, kind: str, register: int, values: Any) -> None:
    if kind == "f64":
        wave.v[register : register + 2] = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2).T
    elif kind == "f16":
        wave.v[register] = values.view(np.uint16)
    else:
        wave.v[register] = values.view(np.uint32)


def take(wave: Any, kind: str, register: int) -> Any:
    if kind == "f64":
        return np.ascontiguousarray(wave.v[register : register + 2].T).view(np.float64).reshape(-1)
    return wave.v[register].view(TYPES[kind])[:: 2 if kind == "f16" else 1]


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize(("name", "expected"), [("add", np.add), ("mul", np.multiply), ("sub", np.subtract)])
def test_sums_and_products_are_ieee(kind: str, name: str, expected: Any) -> None:
    if (name, kind) == ("sub", "f64"):
        return
    wave, a, b = make_wave("gfx942"), nasty(kind, 1), nasty(kind, 2)
    put(wave, kind, 4, a)
    put(wave, kind, 6, b)
    execute(wave, "VOP3", f"v_{name}_{kind}", vdst="v8", src0="v4", src1="v6")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(take(wave, kind, 8), expected(a, b))
        np.testing.assert_array_equal(np.signbit(take(wave, kind, 8))[a == a], np.signbit(expected(a, b))[a == a])


def test_reversed_difference_and_input_modifiers() -> None:
    wave = make_wave("gfx942")
    a, b = wave.f[1], wave.f[2]
    a[...], b[...] = np.arange(64) - 32, 0.5
    execute(wave, "VOP2", "v_subrev_f32", vdst="v3", src0="v1", vsrc1="v2")
    np.testing.assert_array_equal(wave.f[3], b - a)
    execute(wave, "VOP3", "v_mul_f32", vdst="v3", src0="v1", src1="v2", abs=1, neg=3)
    np.testing.assert_array_equal(wave.f[3], np.abs(a) * b)
    execute(wave, "VOP3", "v_add_f32", vdst="v3", src0="v1", src1=1.0, clmp=1)
    np.testing.assert_array_equal(wave.f[3], np.clip(a + 1, 0, 1))


def test_inactive_lanes_keep_their_values() -> None:
    for name, fields in (("v_fma_f32", {"src2": "v3"}), ("v_add_f32", {}), ("v_max_f32", {}), ("v_ldexp_f32", {})):
        wave = make_wave("gfx942", exec_bits=0x0F0F_1234_5678_9ABC)
        before = wave.v[9].copy()
        execute(wave, "VOP3", name, vdst="v9", src0="v1", src1="v2", **fields)
        assert (wave.v[9][~wave.mask] == before[~wave.mask]).all()
        assert (wave.v[9][wave.mask] != before[wave.mask]).any()


@given(SINGLES, SINGLES, SINGLES)
@settings(max_examples=200, deadline=None)
def test_fused_single_rounds_once(a: float, b: float, c: float) -> None:
    values = [np.array([x], np.float32) for x in (a, b, c)]
    with np.errstate(all="ignore"):
        got = fused_single(*values)[0]
    check_rounded_once(Fraction(a) * Fraction(b) + Fraction(c), float(got), np.float32)


def check_rounded_once(exact: Fraction, got: float, dtype: Any) -> None:
    """No neighbour of ``got`` is nearer to the exact value; of two at the same distance the even one is taken."""
    most = Fraction(float(np.finfo(dtype).max))
    if not np.isfinite(got):
        assert abs(exact) > most
        return
    error = abs(Fraction(got) - exact)
    with np.errstate(all="ignore"):
        neighbours = [float(np.nextafter(dtype(got), dtype(direction))) for direction in (np.inf, -np.inf)]
    for neighbour in neighbours:
        if np.isfinite(neighbour):
            other = abs(Fraction(neighbour) - exact)
            assert error < other or (error == other and int(dtype(got).view(f"u{dtype().itemsize}")) % 2 == 0)


def test_fused_single_at_halves_and_among_denormals() -> None:
    # 1 + 2**-24 + 2**-78: a float64 sum rounded twice gives 1 instead of the next number.
    a, b, c = np.float32(2**-39), np.float32(2**-39), np.float32(1)
    tie = np.array([2**-12 + 2**-36], np.float32)
    cases = [([a], [b], [c]), (tie, [np.float32(2**-12)], [c])]
    cases.append(([np.float32(2**-100)], [np.float32(1.5 * 2**-49)], [np.float32(2**-149)]))
    cases.append(([np.float32(-(2**-100))], [np.float32(2**-50)], [np.float32(2**-126)]))
    for case in cases:
        x, y, z = (np.array(values, np.float32) for values in case)
        exact = Fraction(float(x[0])) * Fraction(float(y[0])) + Fraction(float(z[0]))
        check_rounded_once(exact, float(fused_single(x, y, z)[0]), np.float32)


@given(HALVES, HALVES, HALVES)
@settings(max_examples=100, deadline=None)
def test_fused_half_rounds_once(a: float, b: float, c: float) -> None:
    with np.errstate(all="ignore"):
        got = fused_half(*[np.array([x], np.float16) for x in (a, b, c)])[0]
    check_rounded_once(Fraction(a) * Fraction(b) + Fraction(c), float(got), np.float16)


def test_fused_double_rounds_once_and_keeps_ieee_rules() -> None:
    inf, nan, most = np.inf, np.nan, np.finfo(np.float64).max
    tiny = 5e-324
    a = np.array([1 + 2**-52, inf, inf, 0.0, 1.0, most, tiny, -1.0, 3.0])
    b = np.array([1 - 2**-53, 0.0, 2.0, -1.0, nan, 2.0, 0.5, 1.0, inf])
    c = np.array([-1.0, 1.0, -inf, 0.0, 1.0, -most, tiny, 1.0, inf])
    wanted = np.array([2**-53 - 2**-105, nan, nan, 0.0, nan, most, tiny * 2, 0.0, inf])
    wanted[6] = float(Fraction(tiny) * Fraction(1, 2) + Fraction(tiny))
    np.testing.assert_array_equal(fused_double(a, b, c), wanted)


@DIRECTED
@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("name", ["add", "mul", "fma"])
def test_directed_rounding(rounding: int, kind: str, name: str) -> None:
    wave = make_wave("gfx942", mode=0xF0 | rounding)
    random = np.random.default_rng(3)
    a, b, c = ((random.standard_normal(64) * 2.0 ** random.integers(-6, 6, 64)).astype(TYPES[kind]) for _ in range(3))
    for register, values in ((4, a), (5, b), (6, c)):
        put(wave, kind, register, values)
    execute(wave, "VOP3", f"v_{name}_{kind}", vdst="v8", src0="v4", src1="v5", src2="v6" if name == "fma" else 0)
    for lane, got in enumerate(take(wave, kind, 8)):
        x, y, z = (Fraction(float(values[lane])) for values in (a, b, c))
        exact = {"add": x + y, "mul": x * y, "fma": x * y + z}[name]
        assert float(got) == rounded(exact, kind, rounding)


def test_zero_of_a_difference_is_negative_when_rounding_down() -> None:
    for mode, negative in ((0xF0, False), (0xF0 | DOWN, True), (0xF0 | UP, False)):
        wave = make_wave("gfx942", mode=mode)
        wave.f[1][...] = 1.5
        execute(wave, "VOP2", "v_sub_f32", vdst="v2", src0="v1", vsrc1="v1")
        assert (wave.f[2] == 0).all() and (np.signbit(wave.f[2]) == negative).all()


@pytest.mark.parametrize(("mode", "inputs", "outputs"), [(0xC0, 0, 0), (0xD0, 1, 0), (0xE0, 0, 1), (0xF0, 1, 1)])
def test_denormals_of_singles_follow_the_mode(mode: int, inputs: int, outputs: int) -> None:
    wave = make_wave("gfx942", mode=mode)
    denormal, least = np.float32(2**-130), np.float32(2**-126)
    wave.f[1][...], wave.f[2][...] = denormal, least
    execute(wave, "VOP3", "v_mul_f32", vdst="v3", src0="v1", src1=2.0)
    assert (wave.f[3] == (denormal * 2 if inputs and outputs else 0)).all()
    execute(wave, "VOP3", "v_add_f32", vdst="v3", src0="v1", src1="v2")
    assert (wave.f[3] == (least + denormal if inputs else least)).all()
    execute(wave, "VOP3", "v_mul_f32", vdst="v3", src0="v2", src1=0.5, neg=1)
    assert (wave.f[3] == (-least / 2 if outputs else 0)).all() and np.signbit(wave.f[3]).all()


def test_denormals_of_halves_have_their_own_mode() -> None:
    for mode, kept in ((0xF0, True), (0x30, False)):
        wave = make_wave("gfx942", mode=mode)
        wave.v[1][...] = 0x0001
        execute(wave, "VOP2", "v_add_f16", vdst="v2", src0="v1", vsrc1="v1")
        assert (wave.v[2] == (2 if kept else 0)).all()


def test_fp64_refuses_other_roundings() -> None:
    with pytest.raises(Unmodelled, match="nearest"):
        execute(make_wave("gfx942", mode=0xF0 | UP), "VOP3", "v_add_f64", vdst="v2", src0="v4", src1="v6")


def test_accumulators_and_literals() -> None:
    for target in ("gfx942", "gfx1100", "gfx1201"):
        wave = make_wave(target)
        wave.f[1][...], wave.f[2][...], wave.f[3][...] = 3.0, 5.0, 7.0
        execute(wave, "VOP2", "v_fmac_f32", vdst="v3", src0="v1", vsrc1="v2")
        assert (wave.f[3] == 22).all()
        bits = int(np.float32(0.75).view(np.uint32))
        execute(wave, "VOP2_LIT", "v_fmaak_f32", vdst="v4", src0="v1", vsrc1="v2", literal=bits)
        assert (wave.f[4] == 15.75).all()
        execute(wave, "VOP2_LIT", "v_fmamk_f32", vdst="v4", src0="v1", vsrc1="v2", literal=bits)
        assert (wave.f[4] == 7.25).all()


def test_zero_times_anything_is_zero_by_the_old_rules() -> None:
    wave = make_wave("gfx1100")
    wave.f[1][...], wave.f[2][...] = 0.0, np.inf
    execute(wave, "VOP2", "v_mul_dx9_zero_f32", vdst="v3", src0="v1", vsrc1="v2")
    assert (wave.f[3] == 0).all()
    execute(wave, "VOP2", "v_mul_f32", vdst="v3", src0="v1", vsrc1="v2")
    assert np.isnan(wave.f[3]).all()


def test_output_modifiers_only_count_without_ieee_and_denormals() -> None:
    for mode, factor in ((0xC0, 2.0), (0xF0, 1.0), (0xC0 | 1 << 9, 1.0)):
        wave = make_wave("gfx942", mode=mode)
        wave.f[1][...] = 3.0
        execute(wave, "VOP3", "v_add_f32", vdst="v2", src0="v1", src1=1.0, omod=1)
        assert (wave.f[2] == 4 * factor).all()


def test_halves_of_rdna_registers() -> None:
    wave = make_wave("gfx1100")
    wave.v[1][...], wave.v[2][...] = 0x3C00_4000, 0x4200_0000  # 1.0 and 2.0; 3.0 and 0.0
    before = wave.v[3].copy()
    execute(wave, "VOP3", "v_add_f16", vdst="v3", src0="v1", src1="v2", opsel=0b1010)  # v1.l + v2.h to v3.h
    assert (wave.v[3] == (before & 0xFFFF | 0x4500_0000)).all()
    execute(wave, "VOP2", "v_mul_f16", vdst="v3", src0="v129", vsrc1="v2")  # v1.h * v2.l to v3.l
    assert (wave.v[3] == 0x4500_0000).all()


def test_cdna_clears_the_other_half() -> None:
    wave = make_wave("gfx942")
    wave.v[1][...] = 0x3C00_4000
    execute(wave, "VOP2", "v_add_f16", vdst="v3", src0="v1", vsrc1="v1")
    assert (wave.v[3] == 0x4400).all()


def test_unfused_products_round_twice_and_know_no_denormals() -> None:
    wave = make_wave("gfx90a")
    random = np.random.default_rng(9)
    for row in (1, 2, 3):
        wave.f[row][...] = random.standard_normal(64)
    a, b, c = (wave.f[row].copy() for row in (1, 2, 3))
    literal = np.float32(0.7)
    bits = int(literal.view(np.uint32))
    for encoding, name, fields, wanted in (
        ("VOP3", "v_mad_f32", {"src1": "v2", "src2": "v3", "neg": 4}, a * b - c),
        ("VOP2_LIT", "v_madak_f32", {"vsrc1": "v2", "literal": bits}, a * b + literal),
        ("VOP2_LIT", "v_madmk_f32", {"vsrc1": "v2", "literal": bits}, a * literal + b),
    ):
        own = encode("gfx90a", encoding, name.replace("mad", "fma"), vdst="v7", src0="v1", **fields)
        run(wave, replace(decode_one(own, TARGETS["gfx942"], 0), name=name))
        np.testing.assert_array_equal(wave.f[7], wanted)
    execute(wave, "VOP3", "v_mac_f16", vdst="v4", src0="v1", src1="v2")
    wave.f[1][...], wave.f[2][...], wave.f[3][...] = np.float32(2**-130), 1.0, np.float32(2**-140)
    mad = replace(assemble("gfx90a", "VOP3", "v_fma_f32", vdst="v7", src0="v1", src1="v2", src2="v3"), name="v_mad_f32")
    run(wave, mad)
    assert (wave.f[7] == 0).all()
