from __future__ import annotations

from collections.abc import Callable
from math import floor, isnan, trunc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

M32 = 0xFFFFFFFF
UP, DOWN, ZERO = 0b0101, 0b1010, 0b1111
SINGLES = np.array(
    [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        0.49999997,
        1e10,
        -1e10,
        4294967040.0,
        2147483648.0,
        -2147483648.0,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
        2.0**-149,
        -(2.0**-130),
        65504.0,
        65519.0,
        65520.0,
        -65520.0,
        65519.996,
        2.0**-24,
        2.0**-25,
        1.5 * 2.0**-25,
        6.1e-5,
        1.0009765625,
        1.00048828125,
        1.0014648,
        3.3895e38,
    ],
    np.float32,
)


def singles(seed: int = 0, lanes: int = 64) -> Any:
    """The numbers above and random ones of all sizes."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 32, lanes, np.uint32)
    bits[: len(SINGLES)] = SINGLES.view(np.uint32)
    bits[len(SINGLES) :: 2] = (
        (random.standard_normal(lanes) * 50000).astype(np.float32).view(np.uint32)[len(SINGLES) :: 2]
    )
    return bits.view(np.float32)


def whole(function: Callable[[float], int], least: int, most: int, value: float) -> int:
    """NaN is 0, the rest saturates."""
    if isnan(value):
        return 0
    if abs(value) == np.inf:
        return most if value > 0 else least
    return min(max(function(value), least), most)


INTEGERS: dict[str, tuple[Callable[[float], int], int, int]] = {
    "v_cvt_u32_f32": (trunc, 0, M32),
    "v_cvt_i32_f32": (trunc, -(1 << 31), (1 << 31) - 1),
    "v_cvt_flr_i32_f32": (floor, -(1 << 31), (1 << 31) - 1),
    "v_cvt_rpi_i32_f32": (lambda x: floor(x + 0.5), -(1 << 31), (1 << 31) - 1),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_floats_to_integers_saturate(name: str) -> None:
    function, least, most = INTEGERS[name]
    wave = make_wave("gfx942")
    wave.f[1][...] = singles()
    execute(wave, "VOP1", name, vdst="v2", src0="v1")
    wanted = [whole(function, least, most, float(value)) & M32 for value in wave.f[1]]
    np.testing.assert_array_equal(wave.v[2], np.array(wanted, np.uint32))


def test_halves_to_integers_saturate() -> None:
    wave = make_wave("gfx942")
    with np.errstate(all="ignore"):
        values = singles().astype(np.float16)
    wave.v[1] = values.view(np.uint16)
    for name, least, most in (("v_cvt_u16_f16", 0, 0xFFFF), ("v_cvt_i16_f16", -0x8000, 0x7FFF)):
        execute(wave, "VOP1", name, vdst="v2", src0="v1")
        assert wave.v[2].tolist() == [whole(trunc, least, most, float(value)) & 0xFFFF for value in values]


@pytest.mark.parametrize("rounding", [0, UP, DOWN, ZERO])
def test_integers_to_floats_round_by_the_mode(rounding: int) -> None:
    wave = make_wave("gfx942", mode=0xF0 | rounding)
    wave.v[1][:8] = [0, 1, 16777217, 16777219, M32, 0x7FFFFFFF, 0x80000000, 33554435]
    for name, signed in (("v_cvt_f32_u32", False), ("v_cvt_f32_i32", True)):
        execute(wave, "VOP1", name, vdst="v2", src0="v1")
        for lane in range(64):
            exact = int(wave.i[1][lane]) if signed else int(wave.v[1][lane])
            got = float(wave.f[2][lane])
            spacing = max(float(np.spacing(np.float32(abs(exact)))), 1.0)
            assert abs(got - exact) <= (spacing / 2 if rounding == 0 else spacing)
            assert {0: True, UP: got >= exact, DOWN: got <= exact, ZERO: abs(got) <= abs(exact)}[rounding]
        execute(wave, "VOP1", name.replace("f32_", "f64_"), vdst="v4", src0="v1")
        doubles = np.ascontiguousarray(wave.v[4:6].T).view(np.float64).reshape(-1)
        np.testing.assert_array_equal(doubles, wave.i[1] if signed else wave.v[1])


def test_singles_to_halves_round_to_nearest_even_with_denormals() -> None:
    for target in ("gfx942", "gfx1100"):
        wave = make_wave(target)
        values = singles(lanes=wave.lanes)
        wave.f[1][...] = values
        execute(wave, "VOP1", "v_cvt_f16_f32", vdst="v2", src0="v1")
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(wave.v[2].view(np.float16)[::2], values.astype(np.float16))
        execute(wave, "VOP1", "v_cvt_f32_f16", vdst="v3", src0="v2")
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(wave.f[3], values.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize(("rounding", "below", "above"), [(UP, False, True), (DOWN, True, False), (ZERO, None, None)])
def test_singles_to_halves_in_other_roundings(rounding: int, below: bool | None, above: bool | None) -> None:
    wave = make_wave("gfx942", mode=0xF0 | rounding)
    wave.f[1][...] = values = singles(3)
    execute(wave, "VOP1", "v_cvt_f16_f32", vdst="v2", src0="v1")
    for exact, got in zip(values.astype(np.float64), wave.v[2].view(np.float16)[::2], strict=True):
        if not np.isfinite(exact):
            assert got == exact or (isnan(got) and isnan(exact))
            continue
        goes_down = below if below is not None else exact > 0
        assert (float(got) <= exact) if goes_down else (float(got) >= exact)
        near = np.float16(np.clip(exact, -65504, 65504))
        with np.errstate(all="ignore"):
            around = (near, np.nextafter(near, np.float16(np.inf)), np.nextafter(near, np.float16(-np.inf)))
        assert got in around


def test_flushed_denormals_of_conversions() -> None:
    wave = make_wave("gfx942", mode=0x30)  # fp16 flushes, fp32 does not
    wave.f[1][...], wave.v[3][...] = 2.0**-20, 1
    execute(wave, "VOP1", "v_cvt_f16_f32", vdst="v2", src0="v1")
    assert (wave.v[2] == 0).all()
    execute(wave, "VOP1", "v_cvt_f32_f16", vdst="v2", src0="v3")
    assert (wave.v[2] == 0).all()
    wave = make_wave("gfx942", mode=0xC0)  # the other way round
    wave.v[1][...] = 1
    execute(wave, "VOP1", "v_cvt_f64_f32", vdst="v2", src0="v1")
    assert not wave.v[2:4].any()


def halves(words: Any) -> tuple[Any, Any]:
    return words.view(np.uint16)[::2], words.view(np.uint16)[1::2]


@pytest.mark.parametrize(("target", "encoding"), [("gfx942", "VOP3"), ("gfx1201", "VOP2")])
def test_pairs_of_halves_toward_zero(target: str, encoding: str) -> None:
    """65519.996 and everything larger but infinity become 65504."""
    wave = make_wave(target, mode=0xF0)
    a, b = singles(4, wave.lanes), singles(5, wave.lanes)[::-1]
    wave.f[1][...], wave.f[2][...] = a, b
    name = "v_cvt_pkrtz_f16_f32" if target == "gfx942" else "v_cvt_pk_rtz_f16_f32"
    execute(wave, encoding, name, vdst="v3", src0="v1", **{"src1" if encoding == "VOP3" else "vsrc1": "v2"})
    for values, got in zip((a, b), halves(wave.v[3]), strict=True):
        with np.errstate(all="ignore"):
            near = values.astype(np.float16)
            too_far = np.abs(near.astype(np.float64)) > np.abs(values)
            wanted = np.where(too_far, np.nextafter(near, np.float16(0)), near)
        np.testing.assert_array_equal(got.view(np.float16), wanted)


def test_pairs_of_bfloat16() -> None:
    wave = make_wave("gfx950")
    a, b = singles(6), singles(7)
    wave.f[1][...], wave.f[2][...] = a, b
    execute(wave, "VOP3", "v_cvt_pk_bf16_f32", vdst="v3", src0="v1", src1="v2")
    for values, got in zip((a, b), halves(wave.v[3]), strict=True):
        with np.errstate(all="ignore"):
            wanted = values.astype(ml_dtypes.bfloat16).astype(np.float32)
        np.testing.assert_array_equal(got.view(ml_dtypes.bfloat16).astype(np.float32), wanted)
    wave.mode = 0xC0
    with pytest.raises(Unmodelled, match="denormals"):
        execute(wave, "VOP3", "v_cvt_pk_bf16_f32", vdst="v3", src0="v1", src1="v2")


def test_saturating_packs() -> None:
    wave = make_wave("gfx942")
    wave.v[1][::2] >>= 18
    wave.v[2][::2] >>= 17
    execute(wave, "VOP3", "v_cvt_pk_i16_i32", vdst="v3", src0="v1", src1="v2")
    for row, got in zip((1, 2), halves(wave.v[3]), strict=True):
        np.testing.assert_array_equal(got.view(np.int16), np.clip(wave.i[row], -0x8000, 0x7FFF))
    execute(wave, "VOP3", "v_cvt_pk_u16_u32", vdst="v3", src0="v1", src1="v2")
    for row, got in zip((1, 2), halves(wave.v[3]), strict=True):
        np.testing.assert_array_equal(got, np.minimum(wave.v[row], 0xFFFF))


def test_normalised_packs() -> None:
    wave = make_wave("gfx942")
    wave.f[1][...] = np.linspace(-1.5, 1.5, 64)
    wave.f[1][:1] = np.nan
    execute(wave, "VOP3", "v_cvt_pknorm_i16_f32", vdst="v3", src0="v1", src1="v1")
    execute(wave, "VOP3", "v_cvt_pknorm_u16_f32", vdst="v4", src0="v1", src1="v1")
    for lane in range(64):
        value = float(wave.f[1][lane])
        value = 0.0 if isnan(value) else min(max(value, -1.0), 1.0)
        for half in range(2):
            assert wave.v[3].view(np.int16)[2 * lane + half] == round(value * 32767)
            assert wave.v[4].view(np.uint16)[2 * lane + half] == round(max(value, 0.0) * 65535)


def test_saturated_bytes() -> None:
    wave = make_wave("gfx950")
    before = wave.v[3].copy()
    wave.v[1][::2] >>= 12
    execute(wave, "VOP3", "v_ashr_pk_i8_i32", vdst="v3", src0="v1", src1="v2", src2=11, opsel=8)
    low, high = (np.clip(wave.i[row] >> 11, -128, 127) & 255 for row in (1, 2))
    np.testing.assert_array_equal(wave.v[3], before & 0xFFFF | ((low | high << 8).astype(np.uint32) << 16))
    execute(wave, "VOP3", "v_ashr_pk_u8_i32", vdst="v3", src0="v1", src1="v2", src2="v4")
    for lane in range(64):
        low, high = (min(max(int(wave.i[row][lane]) >> (int(wave.v[4][lane]) & 31), 0), 255) for row in (1, 2))
        assert wave.v[3][lane] & 0xFFFF == low | high << 8
    execute(wave, "VOP1", "v_sat_pk_u8_i16", vdst="v3", src0="v1")
    both = np.clip(wave.v[1].view(np.int16), 0, 255).astype(np.uint32)
    np.testing.assert_array_equal(wave.v[3], both[::2] | both[1::2] << 8)


def test_small_integers() -> None:
    wave = make_wave("gfx942")
    for place in range(4):
        execute(wave, "VOP1", f"v_cvt_f32_ubyte{place}", vdst="v2", src0="v1")
        np.testing.assert_array_equal(wave.f[2], wave.v[1] >> np.uint32(8 * place) & np.uint32(255))
    wave.v[1][:16] = range(16)
    execute(wave, "VOP1", "v_cvt_off_f32_i4", vdst="v2", src0="v1")
    assert wave.f[2][:16].tolist() == [value / 16 for value in [*range(8), *range(-8, 0)]]
    execute(wave, "VOP3", "v_pack_b32_f16", vdst="v2", src0="v3", src1="v4", opsel=0b01)
    np.testing.assert_array_equal(wave.v[2], wave.v[3] >> 16 | wave.v[4] << 16)


def test_saturating_mode_of_halves_is_refused() -> None:
    wave: Wave = make_wave("gfx942", mode=0xF0 | 1 << 23)
    for encoding, name, fields in (
        ("VOP1", "v_cvt_f16_f32", {}),
        ("VOP2", "v_add_f16", {"vsrc1": "v1"}),
        ("VOP1", "v_exp_f16", {}),
        ("VOP3", "v_cvt_pkrtz_f16_f32", {"src1": "v1"}),
        ("VOP2", "v_ldexp_f16", {"vsrc1": "v1"}),
    ):
        with pytest.raises(Unmodelled, match="FP16_OVFL"):
            execute(wave, encoding, name, vdst="v2", src0="v1", **fields)
