from __future__ import annotations

from typing import Any

import pytest
from cpu.figures import SMALL, figures, geometric_means


def test_whole_calls_and_bound_calls_are_compared_apart() -> None:
    seconds = {"numpy fp32": [1e-6, 2e-6], "fp32": [2e-6, 4e-6], "fp32 bound": [5e-7, 5e-7], "fp16": [4e-6, 4e-6]}
    summary = figures(seconds, work=1000)
    assert summary["ratios"] == {"fp32": 0.5, "fp32 bound": 3.0, "fp16": 0.75}
    assert summary["ratio_spread"]["fp32 bound"] == [3.0, 2.0, 4.0]
    assert summary["gflops"]["numpy fp32"] == pytest.approx(1.3)


def test_small_shapes_have_means_of_their_own() -> None:
    small: dict[str, Any] = {"shape": (8, 8, SMALL), "ratios": {"fp32": 0.5, "fp32 bound": 3.0}}
    large: dict[str, Any] = {"shape": (8, 8, SMALL + 1), "ratios": {"fp32": 2.0, "fp32 bound": 3.0, "bf16": 1.0}}
    means = geometric_means([small, large])
    assert means["fp32 to numpy fp32"] == 1.0
    assert means["fp32 to numpy fp32, small"] == 0.5
    assert means["fp32 bound to numpy fp32, small"] == 3.0
    assert means["int8 to torch int8"] is None
