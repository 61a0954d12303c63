"""Forward kernels of CK Tile run in the simulator, against float64: masks, biases, cap, dropout, GQA, odd lengths."""

from __future__ import annotations

from typing import Any

import pytest

from attention.amd.compiled import compiled
from attention.amd.launches import Problem, errors
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window

# Of a result rounded once to the operands' type, twice.
TOLERANCE = {"fp32": 2e-6, "fp16": 2e-3, "bf16": 1.6e-2}
CAUSAL: dict[str, Any] = {"family": "fwd", "dtype": "bf16", "hdim": 128, "mask": "generic", "lse": True}
PROBLEMS = (
    Problem(150, 200, window=BOTTOM_RIGHT),
    Problem(130, 90, kv_heads=2, batch=2, window=TOP_LEFT),
    Problem(40, 300, heads=4, window=Window(20, 5)),
    Problem(3, 2, window=BOTTOM_RIGHT),
    Problem(140, 10, window=BOTTOM_RIGHT),  # most queries see nothing
)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_masks(problem: Problem) -> None:
    made = compiled("gfx942", CAUSAL)
    found = errors(made, problem)
    assert made.matrix_instructions >= 64
    assert found.o < TOLERANCE["bf16"] and found.lse < 1e-5
