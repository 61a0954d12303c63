from __future__ import annotations

from itertools import product
from math import copysign, isnan, nan
from typing import Any

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.testing.instructions import execute, make_wave

POOL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, nan, 2.5, -3.25]
QUIET_IEEE = 0xF0 | 1 << 9


def rank(x: float) -> tuple[float, float]:
    return (x, copysign(1, x))


def number(pick: Any, *values: float) -> float:
    """By pairs from the left: a number wins over a NaN, -0 is below +0."""
    result = values[0]
    for value in values[1:]:
        if isnan(result):
            result = value
        elif not isnan(value):
            result = pick((result, value), key=rank)
    return result


def propagating(pick: Any, *values: float) -> float:
    return nan if any(map(isnan, values)) else float(pick(values, key=rank))


def middle(*values: float) -> float:
    return number(min, *values) if any(map(isnan, values)) else sorted(values, key=rank)[1]


CASES: list[tuple[str, str, int, Any]] = [
    ("gfx942", "v_min_f32", 2, lambda *v: number(min, *v)),
    ("gfx942", "v_max_f32", 2, lambda *v: number(max, *v)),
    ("gfx942", "v_min3_f32", 3, lambda *v: number(min, *v)),
    ("gfx942", "v_max3_f32", 3, lambda *v: number(max, *v)),
    ("gfx942", "v_med3_f32", 3, middle),
    ("gfx942", "v_max_f16", 2, lambda *v: number(max, *v)),
    ("gfx950", "v_maximum3_f32", 3, lambda *v: propagating(max, *v)),
    ("gfx950", "v_minimum3_f32", 3, lambda *v: propagating(min, *v)),
    ("gfx1100", "v_minmax_f32", 3, lambda a, b, c: number(max, number(min, a, b), c)),
    ("gfx1100", "v_maxmin_f32", 3, lambda a, b, c: number(min, number(max, a, b), c)),
    ("gfx1201", "v_max_num_f32", 2, lambda *v: number(max, *v)),
    ("gfx1201", "v_minimum_f32", 2, lambda *v: propagating(min, *v)),
    ("gfx1201", "v_maximumminimum_f32", 3, lambda a, b, c: propagating(min, propagating(max, a, b), c)),
    ("gfx1201", "v_med3_num_f32", 3, middle),
]


@pytest.mark.parametrize(("target", "name", "count", "wanted"), CASES, ids=[name for _, name, _, _ in CASES])
def test_every_combination_of_special_values(target: str, name: str, count: int, wanted: Any) -> None:
    dtype: Any = np.float16 if name.endswith("f16") else np.float32
    combinations = list(product(POOL, repeat=count))
    for mode in (0xF0, QUIET_IEEE):
        wave = make_wave(target, mode=mode)
        for first in range(0, len(combinations), wave.lanes):
            some = combinations[first : first + wave.lanes]
            some += [combinations[0]] * (wave.lanes - len(some))
            for position in range(count):
                values = np.array([values[position] for values in some], dtype)
                wave.v[1 + position] = values.view(f"u{values.itemsize}")
            fields = {f"src{position}": f"v{1 + position}" for position in range(count)}
            execute(wave, "VOP3", name, vdst="v9", **fields)
            got = wave.v[9].view(dtype)[:: 4 // np.dtype(dtype).itemsize]
            expected = np.array([wanted(*values) for values in some], dtype)
            np.testing.assert_array_equal(got, expected)
            both = ~np.isnan(expected)
            zero = expected == 0
            if "med3" not in name:
                np.testing.assert_array_equal(np.signbit(got[both & zero]), np.signbit(expected[both & zero]))


def test_signalling_nans_are_quieted_in_ieee_mode_only() -> None:
    for target, mode, name, wins in (
        ("gfx942", 0xF0, "v_max_f32", False),
        ("gfx942", QUIET_IEEE, "v_max_f32", True),
        ("gfx1100", QUIET_IEEE, "v_min_f32", True),
        ("gfx1201", 0xF0, "v_max_num_f32", False),
    ):
        wave = make_wave(target, mode=mode)
        wave.u[1][...], wave.f[2][...] = 0x7F800001, 1.0
        execute(wave, "VOP3", name, vdst="v3", src0="v1", src1="v2")
        assert np.isnan(wave.f[3]).all() == wins
        wave.u[1][...] = 0x7FC00000
        execute(wave, "VOP3", name, vdst="v3", src0="v1", src1="v2")
        assert (wave.f[3] == 1).all()


def test_denormals_are_flushed_by_the_mode() -> None:
    wave = make_wave("gfx942", mode=0xC0)
    wave.f[1][...] = np.float32(2**-130)
    execute(wave, "VOP3", "v_max_f32", vdst="v3", src0="v1", src1=0)
    assert (wave.f[3] == 0).all()


def test_clamp_turns_nan_to_zero_by_the_mode() -> None:
    for mode, kept in ((0xF0, True), (0xF0 | 1 << 8, False)):
        wave = make_wave("gfx942", mode=mode)
        wave.u[1][...] = 0x7FC00000
        execute(wave, "VOP3", "v_max_f32", vdst="v3", src0="v1", src1="v1", clmp=1)
        assert np.isnan(wave.f[3]).all() == kept
