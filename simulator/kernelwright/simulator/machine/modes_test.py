from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.machine import modes

FLOATS = st.floats(-1e300, 1e300)


@given(FLOATS, FLOATS)
@settings(max_examples=200, deadline=None)
def test_a_sum_rounded_to_odd_is_exact_or_odd(a: float, b: float) -> None:
    got = modes.odd_sum(np.array([a]), np.array([b]))
    exact = Fraction(a) + Fraction(b)
    value = Fraction(float(got[0]))
    assert value == exact or int(got.view(np.int64)[0]) % 2 == 1
    assert abs(value - exact) < Fraction(float(np.spacing(np.abs(got[0]))))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("rounding", [modes.NEAREST, modes.UP, modes.DOWN, modes.ZERO])
def test_narrowing_takes_the_right_neighbour(dtype: Any, rounding: int) -> None:
    random = np.random.default_rng(7)
    wide = random.standard_normal(2000) * 2.0 ** random.integers(-30, 18, 2000)
    wide[:8] = [0.0, 1.0, 65504.0, 65519.0, 1e6, -1e6, 2.0**-26, -(2.0**-26)]
    with np.errstate(all="ignore"):
        got = modes.narrow(wide, dtype, rounding)
        below = np.nextafter(got, dtype(-np.inf)).astype(np.float64)
        above = np.nextafter(got, dtype(np.inf)).astype(np.float64)
    near = got.astype(np.float64)
    if rounding == modes.UP:
        assert ((near >= wide) & (below < wide)).all()
    elif rounding == modes.DOWN:
        assert ((near <= wide) & (above > wide)).all()
    elif rounding == modes.ZERO:
        assert (np.abs(near) <= np.abs(wide)).all() and np.isfinite(near).all()
    else:
        finite = np.isfinite(near)
        assert (np.abs(near - wide) <= np.abs(below - wide))[finite].all()
        assert (np.abs(near - wide) <= np.abs(above - wide))[finite].all()


def test_infinities_survive_every_rounding() -> None:
    for rounding in range(4):
        assert modes.narrow(np.array([np.inf, -np.inf]), np.float16, rounding).tolist() == [np.inf, -np.inf]


def test_flushing_keeps_signs_and_normal_numbers() -> None:
    values = np.array([2.0**-127, -(2.0**-149), 2.0**-126, -0.0, np.inf, np.nan], np.float32)
    flushed = modes.flush(values)
    np.testing.assert_array_equal(flushed, np.array([0, -0.0, 2.0**-126, -0.0, np.inf, np.nan], np.float32))
    assert np.signbit(flushed[:4]).tolist() == [False, True, False, True]


def test_gfx12_has_no_ieee_and_clamp_bits() -> None:
    assert modes.ieee(0, TARGETS["gfx1201"]) and modes.clamps_nan(0, TARGETS["gfx1201"])
    assert not modes.ieee(0, TARGETS["gfx942"]) and modes.ieee(1 << 9, TARGETS["gfx942"])
    assert not modes.clamps_nan(0, TARGETS["gfx1100"]) and modes.clamps_nan(1 << 8, TARGETS["gfx1100"])
