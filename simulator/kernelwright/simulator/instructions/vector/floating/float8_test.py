from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave

TYPES: dict[tuple[str, str], Any] = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
    ("gfx1201", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx1201", "bf8"): ml_dtypes.float8_e5m2,
}


def decoded(byte: int, exponent_bits: int, fnuz: bool) -> float:
    """A byte by the definition of its format."""
    mantissa_bits = 7 - exponent_bits
    sign, exponent, mantissa = (
        byte >> 7,
        byte >> mantissa_bits & (1 << exponent_bits) - 1,
        byte & (1 << mantissa_bits) - 1,
    )
    if fnuz and byte == 0x80:
        return np.nan
    if not fnuz and exponent == (1 << exponent_bits) - 1:
        if exponent_bits == 5:
            return np.nan if mantissa else (-1.0) ** sign * np.inf
        if mantissa == 7:
            return np.nan
    bias = (1 << exponent_bits - 1) - (0 if fnuz else 1)
    if exponent == 0:
        return (-1.0) ** sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return (-1.0) ** sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize(("target", "kind"), TYPES)
def test_all_values_decode_by_the_definition_of_the_format(target: str, kind: str) -> None:
    for first in range(0, 256, 32):
        wave = make_wave(target)
        bytes_ = np.arange(first, first + 32, dtype=np.uint32)
        wave.v[1][:32] = bytes_
        execute(wave, "VOP1", f"v_cvt_f32_{kind}", vdst="v2", src0="v1")
        wanted = [decoded(int(byte), 4 if kind == "fp8" else 5, target == "gfx942") for byte in bytes_]
        np.testing.assert_array_equal(wave.f[2][:32], np.array(wanted, np.float32))


def numbers(lanes: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = (random.standard_normal(lanes) * 2.0 ** random.integers(-18, 17, lanes)).astype(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 240.0, 247.9, 248.0, 448.0, 464.0, 465.0, 57344.0, 61440.0, 1e30]
    values[: len(special)] = special
    return values


@pytest.mark.parametrize(("target", "kind"), TYPES)
def test_pairs_round_to_nearest_even_and_keep_the_other_half(target: str, kind: str) -> None:
    for opsel in (0, 8):
        wave = make_wave(target, exec_bits=0x7FFF_FFFF_7FFF_FFFF)
        wave.f[1][...], wave.f[2][...] = numbers(wave.lanes, 1), -numbers(wave.lanes, 2)
        before = wave.v[3].copy()
        execute(wave, "VOP3", f"v_cvt_pk_{kind}_f32", vdst="v3", src0="v1", src1="v2", opsel=opsel)
        with np.errstate(all="ignore"):
            low, high = (wave.f[row].astype(TYPES[target, kind]).view(np.uint8).astype(np.uint32) for row in (1, 2))
        shift, kept = (16, 0xFFFF) if opsel else (0, 0xFFFF0000)
        wanted = before & np.uint32(kept) | (low | high << np.uint32(8)) << np.uint32(shift)
        np.testing.assert_array_equal(wave.v[3], np.where(wave.mask, wanted, before))


@pytest.mark.parametrize(("target", "kind"), TYPES)
def test_the_mode_saturates(target: str, kind: str) -> None:
    wave = make_wave(target, mode=0xF0 | 1 << 23)
    values = np.arange(256, dtype=np.uint8).view(TYPES[target, kind]).astype(np.float32)
    most = float(values[np.isfinite(values)].max())
    wave.f[1][...], wave.f[2][...] = 1e30, -most * 1.01
    execute(wave, "VOP3", f"v_cvt_pk_{kind}_f32", vdst="v3", src0="v1", src1="v2")
    execute(wave, "VOP1", f"v_cvt_pk_f32_{kind}", vdst="v4", src0="v3")
    assert (wave.f[4] == most).all() and (wave.f[5] == -most).all()
    wave.f[1][0] = np.inf
    with pytest.raises(Unmodelled, match="infinity"):
        execute(wave, "VOP3", f"v_cvt_pk_{kind}_f32", vdst="v3", src0="v1", src1="v2")
    wave.set_exec(~1 & (1 << wave.lanes) - 1)
    execute(wave, "VOP3", f"v_cvt_pk_{kind}_f32", vdst="v3", src0="v1", src1="v2")


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_a_literal_is_a_whole_register(target: str) -> None:
    wave = make_wave(target)
    for byte, number in ((0x7E, 448.0), (0xFE, -448.0)):
        execute(wave, "VOP1", "v_cvt_f32_fp8", vdst="v2", src0=byte)
        assert (wave.f[2] == number).all()
    with pytest.raises(Unmodelled, match="inline constant"):
        execute(wave, "VOP1", "v_cvt_f32_fp8", vdst="v2", src0=1)


def test_chosen_bytes_and_words() -> None:
    wave = make_wave("gfx942")
    bytes_ = wave.v[1].view(np.uint8)
    for place in range(4):
        execute(wave, "VOP1_SDWA", "v_cvt_f32_fp8", vdst="v2", vsrc0="v1", src0_sel=place, dst_sel=6)
        wanted = bytes_[place::4].view(ml_dtypes.float8_e4m3fnuz).astype(np.float32)
        np.testing.assert_array_equal(wave.f[2], wanted)
    for word in range(2):
        execute(wave, "VOP1_SDWA", "v_cvt_pk_f32_bf8", vdst="v2", vsrc0="v1", src0_sel=4 + word, dst_sel=6)
        for half in range(2):
            wanted = bytes_[2 * word + half :: 4].view(ml_dtypes.float8_e5m2fnuz).astype(np.float32)
            np.testing.assert_array_equal(wave.f[2 + half], wanted)
    wave = make_wave("gfx1201")
    bytes_ = wave.v[1].view(np.uint8)
    for opsel, place in ((0, 0), (1, 2), (2, 1), (3, 3)):  # gfx12 has the two bits in opposite order
        execute(wave, "VOP3", "v_cvt_f32_fp8", vdst="v2", src0="v1", opsel=opsel)
        np.testing.assert_array_equal(wave.f[2], bytes_[place::4].view(ml_dtypes.float8_e4m3fn).astype(np.float32))
    execute(wave, "VOP1", "v_cvt_pk_f32_fp8", vdst="v2", src0="v129")  # v1.h
    np.testing.assert_array_equal(wave.f[3], bytes_[3::4].view(ml_dtypes.float8_e4m3fn).astype(np.float32))


def test_targets_without_fp8_refuse() -> None:
    with pytest.raises(Unmodelled, match="gfx90a"):
        execute(make_wave("gfx90a"), "VOP1", "v_cvt_f32_fp8", vdst="v2", src0="v1")
