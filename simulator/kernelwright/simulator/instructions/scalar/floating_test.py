from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.testing import instructions as testing
from kernelwright.simulator.testing.instructions import run

assemble, make_wave = cache(testing.assemble), cache(testing.make_wave)
floats = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.5, 1e-40, -1e-45, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan")]),
    st.floats(width=32),
)
ONCE = settings(deadline=None, max_examples=60)
KEEP, FLUSH = 0xF0, 0xC0  # denormals of fp32


def bits(value: object) -> int:
    return int(np.float32(value).view(np.uint32))  # type: ignore[arg-type]


def of(word: int) -> np.float32:
    number: np.float32 = np.uint32(word).view(np.float32)
    return number


def go(encoding: str, name: str, a: int, b: int = 0, mode: int = KEEP) -> tuple[int, int]:
    wave = make_wave("gfx1201")
    wave.mode, wave.scc, wave.s[4], wave.s[8] = mode, 0, a, b
    fields = {"ssrc0": "s4"} | ({} if encoding == "SOP1" else {"ssrc1": "s8"})
    run(wave, assemble("gfx1201", encoding, name, **fields, **({} if encoding == "SOPC" else {"sdst": "s20"})))
    return wave.s[20], wave.scc


@pytest.mark.parametrize(
    ("name", "function"),
    [("s_add_f32", np.add), ("s_sub_f32", np.subtract), ("s_mul_f32", np.multiply)],
)
def test_arithmetic_is_numpys(name: str, function: Callable[..., np.float32]) -> None:
    @ONCE
    @given(floats, floats)
    def check(a: float, b: float) -> None:
        with np.errstate(all="ignore"):
            expected = function(np.float32(a), np.float32(b))
        actual = of(go("SOP2", name, bits(a), bits(b))[0])
        assert (np.isnan(expected) and np.isnan(actual)) or bits(actual) == bits(expected)

    check()


def test_denormals_and_rounding_follow_the_mode() -> None:
    tiny, least = bits(1e-39), bits(2.0**-126)
    assert of(go("SOP2", "s_mul_f32", tiny, bits(2.0), KEEP)[0]) == np.float32(2) * of(tiny)
    assert go("SOP2", "s_mul_f32", tiny, bits(2.0), FLUSH)[0] == 0
    assert go("SOP2", "s_mul_f32", least, bits(-0.5), FLUSH)[0] == 0x8000_0000
    third = [of(go("SOP2", "s_mul_f32", bits(1 / 3), bits(1 / 3), KEEP | mode)[0]) for mode in range(4)]
    nearest, up, down, zero = third
    assert down < up == np.nextafter(down, np.float32(1)) and zero == down and nearest in (up, down)
    assert float(down) < float(np.float32(1 / 3)) ** 2 < float(up)


@ONCE
@given(floats, floats)
def test_comparisons_treat_nan_as_unordered(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)
    unordered = bool(np.isnan(x) or np.isnan(y))
    expected = {"lt": x < y, "eq": x == y, "le": x <= y, "gt": x > y, "ge": x >= y, "lg": x != y and not unordered}
    expected |= {"o": not unordered, "u": unordered, "neq": x != y, "nlt": not x < y, "nge": not x >= y}
    for relation, wanted in expected.items():
        assert go("SOPC", f"s_cmp_{relation}_f32", bits(x), bits(y))[1] == int(wanted), relation


@ONCE
@given(floats)
def test_conversions_to_integers_truncate_and_saturate(a: float) -> None:
    x = float(np.float32(a))
    for name, low, high in (("s_cvt_u32_f32", 0, (1 << 32) - 1), ("s_cvt_i32_f32", -(1 << 31), (1 << 31) - 1)):
        expected = 0 if x != x else low if x <= low else high if x >= high else int(x)
        assert go("SOP1", name, bits(x))[0] == expected & 0xFFFF_FFFF, name


@ONCE
@given(st.integers(0, 0xFFFF_FFFF))
def test_conversions_from_integers_round_to_nearest(word: int) -> None:
    assert go("SOP1", "s_cvt_f32_u32", word)[0] == bits(np.uint32(word).astype(np.float32))
    assert go("SOP1", "s_cvt_f32_i32", word)[0] == bits(np.uint32(word).view(np.int32).astype(np.float32))


@ONCE
@given(floats)
def test_rounding_to_whole_numbers(a: float) -> None:
    for name, function in (("ceil", np.ceil), ("floor", np.floor), ("trunc", np.trunc), ("rndne", np.rint)):
        actual, expected = of(go("SOP1", f"s_{name}_f32", bits(a))[0]), function(np.float32(a))
        assert (np.isnan(expected) and np.isnan(actual)) or bits(actual) == bits(expected), name


def test_extremes_prefer_numbers_and_order_zeros() -> None:
    nan = bits(float("nan"))
    assert go("SOP2", "s_min_num_f32", nan, bits(3.0))[0] == go("SOP2", "s_max_num_f32", bits(3.0), nan)[0] == bits(3.0)
    assert go("SOP2", "s_min_num_f32", 0, bits(-0.0))[0] == bits(-0.0)
    assert go("SOP2", "s_max_num_f32", bits(-0.0), 0)[0] == 0


def test_a_fused_product_is_rounded_once() -> None:
    wave = make_wave("gfx1201")
    a = np.float32(1 + 2**-12)
    wave.mode, wave.s[4], wave.s[8], wave.s[20] = KEEP, bits(a), bits(a), bits(-1.0)
    run(wave, assemble("gfx1201", "SOP2", "s_fmac_f32", sdst="s20", ssrc0="s4", ssrc1="s8"))
    assert float(of(wave.s[20])) == float(a) ** 2 - 1
