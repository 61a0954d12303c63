from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, frexp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
SPECIAL = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 2.0**-149, -(2.0**-130), 3.4e38, 2.0**-126]


def divide(wave: Wave) -> None:
    """The instructions that LLVM makes of an IEEE division: v1 / v2 to v9 (LegalizerInfo, "fdiv f32")."""
    execute(wave, "VOP3SD", "v_div_scale_f32", vdst="v3", sdst="s10", src0="v2", src1="v2", src2="v1")
    execute(wave, "VOP3SD", "v_div_scale_f32", vdst="v4", sdst="vcc", src0="v1", src1="v2", src2="v1")
    execute(wave, "VOP1", "v_rcp_f32", vdst="v5", src0="v3")
    execute(wave, "VOP3", "v_fma_f32", vdst="v6", src0="v3", src1="v5", src2=1.0, neg=1)
    execute(wave, "VOP3", "v_fma_f32", vdst="v5", src0="v6", src1="v5", src2="v5")
    execute(wave, "VOP2", "v_mul_f32", vdst="v6", src0="v4", vsrc1="v5")
    execute(wave, "VOP3", "v_fma_f32", vdst="v7", src0="v3", src1="v6", src2="v4", neg=1)
    execute(wave, "VOP3", "v_fma_f32", vdst="v6", src0="v7", src1="v5", src2="v6")
    execute(wave, "VOP3", "v_fma_f32", vdst="v7", src0="v3", src1="v6", src2="v4", neg=1)
    execute(wave, "VOP3", "v_div_fmas_f32", vdst="v8", src0="v7", src1="v5", src2="v6")
    execute(wave, "VOP3", "v_div_fixup_f32", vdst="v9", src0="v8", src1="v2", src2="v1")


def check_division(numerators: Any, denominators: Any, target: str = "gfx942") -> None:
    wave = make_wave(target)
    wave.f[1][...], wave.f[2][...] = numerators, denominators
    divide(wave)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wave.f[9], wave.f[1] / wave.f[2])


def test_division_is_correctly_rounded_for_operands_of_every_size() -> None:
    random = np.random.default_rng(1)
    for _ in range(40):
        bits = random.integers(0, 1 << 32, (2, 64), np.uint32)
        bits[1, ::7] = random.choice(np.array(SPECIAL, np.float32).view(np.uint32), 10)
        bits[0, ::5] = random.choice(np.array(SPECIAL, np.float32).view(np.uint32), 13)
        check_division(*bits.view(np.float32))


def test_division_near_the_bounds_of_its_cases() -> None:
    random = np.random.default_rng(2)
    for difference in (-151, -150, -149, -140, -127, -126, 95, 96, 97, 126, 127):
        top = random.integers(max(-148, -126 + difference), min(127, 127 + difference) + 1, 64)
        one = 1 + random.random((2, 64))
        check_division(*(one * 2.0 ** np.array([top, top - difference])).astype(np.float32))


@given(st.lists(st.tuples(FINITE, FINITE), min_size=64, max_size=64))
@settings(max_examples=10, deadline=None)
def test_division_of_arbitrary_numbers(pairs: list[tuple[float, float]]) -> None:
    check_division(*np.array(pairs, np.float32).T)


def test_division_fixup_refuses_other_roundings() -> None:
    with pytest.raises(Unmodelled, match="nearest"):
        wave = make_wave("gfx942", mode=0xF1)
        execute(wave, "VOP3", "v_div_fixup_f32", vdst="v9", src0="v8", src1="v2", src2="v1")


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_whole_numbers(kind: str) -> None:
    dtype: Any = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.25, -0.75, 7, *SPECIAL[:5], *np.linspace(-4, 4, 51)], dtype)
    reference: dict[str, Callable[[float], float]] = {
        "floor": lambda x: float(floor(x)),
        "ceil": lambda x: float(-floor(-x)),
        "trunc": lambda x: float(int(x)),
        "rndne": lambda x: float(round(x)),  # Python rounds halves to even
    }
    for name, function in reference.items():
        wave = make_wave("gfx942")
        store(wave, kind, 2, values)
        execute(wave, "VOP1", f"v_{name}_{kind}", vdst="v4", src0="v2")
        wanted = [function(float(x)) if np.isfinite(x) else float(x) for x in values]
        got = load(wave, kind, 4)
        np.testing.assert_array_equal(got, wanted)
        assert (np.signbit(got) == np.signbit(values)).all() or name == "floor" or name == "ceil"


def store(wave: Wave, kind: str, row: int, values: Any) -> None:
    if kind == "f64":
        wave.v[row : row + 2] = values.view(np.uint32).reshape(-1, 2).T
    else:
        wave.v[row] = values.view(np.uint16 if kind == "f16" else np.uint32)


def load(wave: Wave, kind: str, row: int) -> Any:
    if kind == "f64":
        return np.ascontiguousarray(wave.v[row : row + 2].T).view(np.float64).reshape(-1)
    return wave.v[row].view(np.float16)[::2] if kind == "f16" else wave.f[row]


def test_fractions_stay_below_one() -> None:
    wave = make_wave("gfx942")
    wave.f[1][...] = np.tile(np.array([1.25, -0.25, -1e-10, 3.0], np.float32), 16)
    execute(wave, "VOP1", "v_fract_f32", vdst="v2", src0="v1")
    np.testing.assert_array_equal(wave.f[2][:4], np.array([0.25, 0.75, 1 - 2**-24, 0], np.float32))


def test_mantissas_and_exponents_rebuild_the_number() -> None:
    for kind, bits in (("f16", "i16"), ("f32", "i32"), ("f64", "i32")):
        dtype: Any = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
        random = np.random.default_rng(4)
        values = (random.standard_normal(64) * 2.0 ** random.integers(-18, 14, 64)).astype(dtype)
        values[:4] = [0, np.inf, np.nan, np.finfo(dtype).smallest_subnormal]
        wave = make_wave("gfx942")
        store(wave, kind, 2, values)
        execute(wave, "VOP1", f"v_frexp_mant_{kind}", vdst="v4", src0="v2")
        execute(wave, "VOP1", f"v_frexp_exp_{bits}_{kind}", vdst="v6", src0="v2")
        exponents = wave.v[6].view(np.int16)[::2] if bits == "i16" else wave.i[6]
        mantissas = load(wave, kind, 4)
        assert (exponents[:3] == 0).all()
        normal = np.isfinite(values) & (values != 0)
        assert ((np.abs(mantissas[normal]) >= 0.5) & (np.abs(mantissas[normal]) < 1)).all()
        rebuilt = mantissas.astype(np.float64) * np.exp2(exponents.astype(np.float64))
        np.testing.assert_array_equal(rebuilt, values.astype(np.float64))


@given(FINITE, st.integers(-400, 400) | st.sampled_from([-(1 << 31), (1 << 31) - 1, -149, -150, 127, 128]))
@settings(max_examples=60, deadline=None)
def test_ldexp_rounds_once(value: float, exponent: int) -> None:
    wave = make_wave("gfx942")
    wave.f[1][...], wave.i[2][...] = value, exponent
    execute(wave, "VOP3", "v_ldexp_f32", vdst="v3", src0="v1", src1="v2")
    exact = Fraction(value) * Fraction(2) ** min(max(exponent, -1000), 1000)
    got = float(wave.f[3][0])
    if np.isinf(got):
        assert abs(exact) > Fraction(float(np.finfo(np.float32).max))
        return
    step = Fraction(2) ** max(frexp(got)[1] - 24, -149)
    assert abs(Fraction(got) - exact) <= step / 2


def test_ldexp_flushes_and_refuses_by_the_mode() -> None:
    wave = make_wave("gfx942", mode=0xC0)
    wave.f[1][...], wave.i[2][...] = 1.0, -130
    execute(wave, "VOP3", "v_ldexp_f32", vdst="v3", src0="v1", src1="v2")
    assert (wave.f[3] == 0).all()
    with pytest.raises(Unmodelled):
        execute(make_wave("gfx942", mode=0xF0 | 4), "VOP3", "v_ldexp_f64", vdst="v4", src0="v2", src1="v1")
