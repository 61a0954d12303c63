from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.codegen.heuristics.schema import Schema, schema_of
from kernelwright.codegen.violations import SpecError

GEMM = schema_of("gemm")
ONE: dict[str, float] = dict.fromkeys(GEMM.inputs, 1.0)


def schema(**features: str) -> Schema:
    return Schema("x", {"a": "p->a", "b": "p->b"}, features, (), "")


@settings(deadline=None)  # other builds share the machine
@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 64))
def test_features_of_gemm_are_numbers_of_tiles(m: int, n: int, tile: int) -> None:
    given = {**ONE, "m": m, "n": n, "tile_m": tile, "tile_n": 2, "slices": 3, "units": 4}
    values = dict(zip(GEMM.features, GEMM.values(given), strict=True))
    assert values["tiles"] == -(-m // tile) * -(-n // 2) and values["tiles_per_unit"] == values["tiles"] * 3 / 4
    assert values["useful_m"] == pytest.approx(m / (-(-m // tile) * tile)) and 0 < values["useful_m"] <= 1
    without = dict(zip(GEMM.features, GEMM.values({**given, "hopper": 0}), strict=True))
    assert without.pop("predicted_rate") == 0 != values.pop("predicted_rate") and without == values


def test_every_input_is_used_and_models_cover_by_features_of_problems() -> None:
    text = " ".join((*GEMM.terms.values(), *GEMM.features.values()))
    assert all(name in text for name in GEMM.inputs)
    assert set(GEMM.problem_features) <= set(GEMM.features)


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("ceil(a / b)", 4.0, "ceil((a / b))"),
        ("min(a, 2) - max(b, 5)", -3.0, "(fmin(a, 2.0) - fmax(b, 5.0))"),
        ("log2(8) * (a <= b)", 0.0, "(log2(8.0) * ((a <= b) ? 1.0 : 0.0))"),
    ],
)
def test_an_expression_is_a_function_and_c(text: str, value: float, written: str) -> None:
    one = schema(f=text)
    assert one.functions["f"]({"a": 7, "b": 2}) == value and one.c_expressions["f"] == written


def test_terms_are_shared_and_computed_in_their_order() -> None:
    terms = {"steps": "ceil(a / 4)", "rounds": "floor(steps / b)"}
    one = Schema("x", {"a": "p->a", "b": "value", "c": "p->c"}, {"f": "rounds + steps", "g": "log(a)"}, (), "", terms)
    assert one.values({"a": 9, "b": 2}) == [4.0, math.log(9)]
    assert one.c_terms == {"steps": "ceil((a / 4.0))", "rounds": "floor((steps / b))"}
    assert one.c_expressions["f"] == "(rounds + steps)"
    assert list(one.used_inputs) == ["a", "b"] and one.reads_value and GEMM.reads_value
    later = Schema("x", {"a": "p->a"}, {}, (), "", {"steps": "rounds", "rounds": "a"})
    with pytest.raises(SpecError, match=r"rounds is not allowed; inputs: a"):
        _ = later.c_terms


@pytest.mark.parametrize("text", ["c", "a ** 2", "a if b else 1", "open('x')", "a.b", "'a'", "a < b < 3", "True"])
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(SpecError, match=r"is not allowed; inputs: a, b"):
        _ = schema(f=text).functions


def test_an_unknown_operation_has_no_features() -> None:
    with pytest.raises(SpecError, match=r"no features are known of 'fft'; allowed: .*gemm"):
        schema_of("fft")
