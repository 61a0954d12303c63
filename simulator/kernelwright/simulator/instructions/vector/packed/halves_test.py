from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

ACTIVE = 0x0F1F_2F3F_4F5F_6F7F
SELECTIONS = [(0b000, 0b11, 1), (0b111, 0b00, 0), (0b010, 0b10, 1), (0b101, 0b01, 0)]  # opsel, opsel_hi, opsel_hi2


def small_halves(wave: Wave, rows: tuple[int, ...]) -> None:
    """Numbers of which sums and products stay finite, with zeros among them."""
    random = np.random.default_rng(1)
    for row in rows:
        values = (random.integers(-512, 512, 2 * wave.lanes) / 16).astype(np.float16)
        wave.v[row] = values.view(np.uint32)


def half(wave: Wave, row: int, which: int, kind: Any) -> Any:
    return wave.v[row].view(kind)[which::2]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", ["v_pk_add_f16", "v_pk_mul_f16", "v_pk_fma_f16"])
def test_halves_are_selected_and_negated(name: str, selection: tuple[int, int, int]) -> None:
    opsel, upper, upper2 = selection
    neg, neg_hi = 0b011, 0b110
    for target in ("gfx942", "gfx1100", "gfx1201"):
        wave = make_wave(target, exec_bits=ACTIVE)
        small_halves(wave, (1, 2, 3))
        before = wave.v[7].copy()
        fields = {"opsel": opsel, "opsel_hi": upper, "opsel_hi2": upper2, "neg": neg, "neg_hi": neg_hi}
        third = {"src2": "v3"} if "fma" in name else {}
        execute(wave, "VOP3P", name, vdst="v7", src0="v1", src1="v2", **third, **fields)
        for result, (chosen, signs) in enumerate(((opsel, neg), (upper | upper2 << 2, neg_hi))):
            a, b, c = (
                half(wave, row, chosen >> place & 1, np.float16).astype(np.float64) * (-1) ** (signs >> place & 1)
                for place, row in enumerate((1, 2, 3))
            )
            exact = {"v_pk_add_f16": a + b, "v_pk_mul_f16": a * b, "v_pk_fma_f16": a * b + c}[name]
            old = before.view(np.float16)[result::2]
            np.testing.assert_array_equal(
                half(wave, 7, result, np.float16), np.where(wave.mask, exact.astype(np.float16), old)
            )


def test_constants_and_scalars() -> None:
    """A float constant is fp16 in the low half and 0 in the high one; an integer has its sign in both."""
    wave = make_wave("gfx942")
    small_halves(wave, (1,))
    wave.s[4] = 0x3C00_4000  # 1.0 and 2.0
    execute(wave, "VOP3P", "v_pk_mul_f16", vdst="v7", src0="v1", src1=2.0)
    np.testing.assert_array_equal(half(wave, 7, 0, np.float16), 2 * half(wave, 1, 0, np.float16))
    assert (half(wave, 7, 1, np.float16) == 0).all()
    execute(wave, "VOP3P", "v_pk_mul_f16", vdst="v7", src0="v1", src1=2.0, opsel_hi=1)
    np.testing.assert_array_equal(half(wave, 7, 1, np.float16), 2 * half(wave, 1, 1, np.float16))
    execute(wave, "VOP3P", "v_pk_mul_f16", vdst="v7", src0="v1", src1="s4")
    np.testing.assert_array_equal(half(wave, 7, 0, np.float16), 2 * half(wave, 1, 0, np.float16))
    np.testing.assert_array_equal(half(wave, 7, 1, np.float16), half(wave, 1, 1, np.float16))
    execute(wave, "VOP3P", "v_pk_add_u16", vdst="v7", src0="v1", src1=-3)
    for which, less in ((0, 3), (1, 1)):
        np.testing.assert_array_equal(
            half(wave, 7, which, np.uint16), half(wave, 1, which, np.uint16) - np.uint16(less)
        )


def wrap(value: int) -> int:
    return value & 0xFFFF


INTEGERS: dict[str, Any] = {
    "v_pk_add_u16": lambda a, b, c: a + b,
    "v_pk_sub_i16": lambda a, b, c: a - b,
    "v_pk_mul_lo_u16": lambda a, b, c: a * b,
    "v_pk_mad_u16": lambda a, b, c: a * b + c,
    "v_pk_mad_i16": lambda a, b, c: a * b + c,
    "v_pk_min_i16": lambda a, b, c: min(a, b),
    "v_pk_max_u16": lambda a, b, c: max(a, b),
    "v_pk_lshlrev_b16": lambda a, b, c: b << (a & 15),
    "v_pk_lshrrev_b16": lambda a, b, c: (b & 0xFFFF) >> (a & 15),
    "v_pk_ashrrev_i16": lambda a, b, c: b >> (a & 15),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_and_saturate(name: str) -> None:
    kind: Any = np.int16 if "i16" in name else np.uint16
    limits = np.iinfo(kind)
    saturates = any(verb in name for verb in ("add", "sub", "mad"))
    for clamp in (0, 1) if saturates else (0,):
        wave = make_wave("gfx942")
        third = {"src2": "v3"} if "mad" in name else {}
        execute(wave, "VOP3P", name, vdst="v7", src0="v1", src1="v2", clmp=clamp, **third)
        for which in range(2):
            operands = (half(wave, row, which, kind).tolist() for row in (1, 2, 3))
            wanted = [INTEGERS[name](*values) for values in zip(*operands, strict=True)]
            if clamp:
                wanted = [min(max(value, int(limits.min)), int(limits.max)) for value in wanted]
            assert half(wave, 7, which, np.uint16).tolist() == [wrap(value) for value in wanted]


def test_clamped_and_accumulated_halves() -> None:
    wave = make_wave("gfx942")
    small_halves(wave, (1, 2, 3))
    execute(wave, "VOP3P", "v_pk_add_f16", vdst="v7", src0="v1", src1="v2", clmp=1)
    total = wave.v[1].view(np.float16) + wave.v[2].view(np.float16)
    np.testing.assert_array_equal(wave.v[7].view(np.float16), np.clip(total, 0, 1))
    a, b, c = (wave.v[row].view(np.float16).astype(np.float64) for row in (1, 2, 3))
    execute(wave, "VOP2", "v_pk_fmac_f16", vdst="v3", src0="v1", vsrc1="v2")
    np.testing.assert_array_equal(wave.v[3].view(np.float16), (a * b + c).astype(np.float16))


def test_extremes_of_halves() -> None:
    for target, low, high in (("gfx942", "min", "max"), ("gfx1201", "min_num", "max_num")):
        wave = make_wave(target)
        small_halves(wave, (1, 2))
        wave.v[1][::8] = 0x7E00_7E00  # NaNs
        a, b = wave.v[1].view(np.float16), wave.v[2].view(np.float16)
        execute(wave, "VOP3P", f"v_pk_{high}_f16", vdst="v7", src0="v1", src1="v2")
        np.testing.assert_array_equal(wave.v[7].view(np.float16), np.fmax(a, b))
        execute(wave, "VOP3P", f"v_pk_{low}_f16", vdst="v7", src0="v1", src1="v2")
        np.testing.assert_array_equal(wave.v[7].view(np.float16), np.fmin(a, b))
    wave = make_wave("gfx950")
    small_halves(wave, (1, 2, 3))
    wave.v[2][5] = 0x7E00_7E00
    execute(wave, "VOP3P", "v_pk_maximum3_f16", vdst="v7", src0="v1", src1="v2", src2="v3")
    rows = [wave.v[row].view(np.float16) for row in (1, 2, 3)]
    np.testing.assert_array_equal(wave.v[7].view(np.float16), np.maximum(np.maximum(rows[0], rows[1]), rows[2]))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_packed_singles(selection: tuple[int, int, int]) -> None:
    opsel, upper, upper2 = selection
    wave = make_wave("gfx942", exec_bits=ACTIVE)
    random = np.random.default_rng(2)
    for row in range(2, 8):
        wave.f[row][...] = random.standard_normal(64)
    before = wave.v[8:10].copy()
    fields = {"opsel": opsel, "opsel_hi": upper, "opsel_hi2": upper2, "neg": 0b001, "neg_hi": 0b100}
    execute(wave, "VOP3P", "v_pk_fma_f32", vdst="v8", src0="v2", src1="v4", src2="v6", **fields)
    for result, (chosen, signs) in enumerate(((opsel, 0b001), (upper | upper2 << 2, 0b100))):
        for lane in range(64):
            x, y, z = (
                Fraction(float(wave.f[row + (chosen >> place & 1)][lane])) * (-1) ** (signs >> place & 1)
                for place, row in enumerate((2, 4, 6))
            )
            wanted = np.float32(float(x * y + z)).view(np.uint32)
            assert wave.v[8 + result][lane] == (wanted if wave.mask[lane] else before[result][lane])


def test_packed_singles_from_scalars_and_constants() -> None:
    wave = make_wave("gfx942")
    wave.f[2][...], wave.f[3][...] = 3.0, 5.0
    wave.s[4], wave.s[5] = (int(np.float32(value).view(np.uint32)) for value in (2.0, -4.0))
    execute(wave, "VOP3P", "v_pk_mul_f32", vdst="v8", src0="v2", src1="s4")
    assert (wave.f[8] == 6).all() and (wave.f[9] == -20).all()
    execute(wave, "VOP3P", "v_pk_add_f32", vdst="v2", src0="v2", src1=1.0, opsel_hi=1)
    assert (wave.f[2] == 4).all() and (wave.f[3] == 6).all()
    with pytest.raises(Unmodelled, match="high half"):
        execute(wave, "VOP3P", "v_pk_add_f32", vdst="v2", src0="v2", src1=1.0)


def test_packed_moves() -> None:
    wave = make_wave("gfx942", exec_bits=ACTIVE)
    before = wave.v.copy()
    execute(wave, "VOP3P", "v_pk_mov_b32", vdst="v2", src0="v2", src1="v4", opsel=0b01)
    np.testing.assert_array_equal(wave.v[2], np.where(wave.mask, before[3], before[2]))
    np.testing.assert_array_equal(wave.v[3], np.where(wave.mask, before[4], before[3]))
    execute(wave, "VOP3P", "v_pk_mov_b32", vdst="v2", src0="s6", src1="s8", opsel=0b10)
    assert (wave.v[2][wave.mask] == wave.s[6]).all() and (wave.v[3][wave.mask] == wave.s[9]).all()
