from __future__ import annotations

import math

import pytest
from equality import UnequalOutputsError, error_limit, require_equal, unequal


@pytest.mark.parametrize(
    ("dtype", "output", "rounded", "missing"),
    [
        ("bf16", "bf16", 1.66e-3, math.sqrt(64 / 24576)),
        ("fp16", "fp16", 2.1e-4, math.sqrt(64 / 24576)),
        ("fp8", "bf16", 0.02, math.sqrt(128 / 16384)),
        ("fp32", "fp32", 3e-7, math.sqrt(1 / 4096)),
    ],
)
def test_rounding_is_equal_and_a_missing_tile_is_not(dtype: str, output: str, rounded: float, missing: float) -> None:
    limit = error_limit(dtype, output)
    assert unequal({"rounded": rounded, "missing": missing}, limit) == {"missing": missing}


def test_integers_are_exact() -> None:
    assert error_limit("int8", "int32") == 0
    assert unequal({"exact": 0.0, "off": 1e-9}, 0.0) == {"off": 1e-9}


def test_what_was_never_written_is_unequal() -> None:
    assert list(unequal({"poison": math.nan}, 1.0)) == ["poison"]


def test_the_error_names_problem_call_and_limit() -> None:
    require_equal({"ours": 0.001}, 0.002, "bf16 1x2x3")
    with pytest.raises(UnequalOutputsError, match=r"bf16 1x2x3: ours is off by 0.5 .*allowed: 0.002"):
        require_equal({"ours": 0.5, "numpy": 0.0}, 0.002, "bf16 1x2x3")
