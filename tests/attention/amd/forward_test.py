"""Forward kernels of CK Tile run in the simulator, against float64: masks, biases, cap, dropout, GQA, odd lengths."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attention.amd.compiled import compiled
from attention.amd.launches import Problem, errors
from attention.amd.memory import TOLERANCE
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window

CAUSAL: dict[str, Any] = {"family": "fwd", "dtype": "bf16", "hdim": 128, "mask": "generic", "lse": True}
PROBLEMS = (
    Problem(150, 200, window=BOTTOM_RIGHT),
    Problem(130, 90, kv_heads=2, batch=2, window=TOP_LEFT),
    Problem(40, 300, heads=4, window=Window(20, 5)),
    Problem(3, 2, window=BOTTOM_RIGHT),
    Problem(140, 10, window=BOTTOM_RIGHT),  # most queries see nothing
)


@pytest.mark.thorough(instead="tests/attention/amd/neighbours_test.py")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_masks(problem: Problem) -> None:
    made = compiled("gfx942", CAUSAL)
    error = errors(made, problem)
    assert made.report["matrix_instructions"] >= 64
    assert error.o < TOLERANCE["bf16"] and error.lse < 1e-5


FWD: dict[str, Any] = {"family": "fwd", "dtype": "fp16", "hdim": 128, "lse": True}
WHOLE_TILES = {"pipeline": "qr_async_trload", "pad": [False] * 4}
EVERY: tuple[tuple[str, dict[str, Any], Problem], ...] = (
    ("gfx942", {**FWD, "bias": "alibi"}, Problem(100, 130)),
    ("gfx942", {**FWD, "logits_soft_cap": True}, Problem(100, 130, cap=2.0)),
    ("gfx942", {**FWD, "bias": "elementwise"}, Problem(100, 130, kv_heads=2)),
    ("gfx942", {**FWD, "hdim": 64, "dropout": True}, Problem(140, 140, kv_heads=2, batch=2, keep=0.8)),
    ("gfx942", {**FWD, "dtype": "bf16", "hdim": 256}, Problem(100, 130)),
    ("gfx942", {**FWD, "dtype": "fp32", "hdim": 64, "mask": "generic"}, Problem(100, 130, window=TOP_LEFT)),
    ("gfx90a", {**FWD, "mask": "generic"}, Problem(100, 130, window=TOP_LEFT)),
    ("gfx950", {**FWD, "mask": "generic"}, Problem(100, 130, window=Window(20, 5))),
    ("gfx950", {**FWD, "hdim": 32, "pipeline": "qr_async"}, Problem(100, 130)),
    ("gfx950", {**FWD, **WHOLE_TILES, "mask": "generic"}, Problem(128, 256, window=BOTTOM_RIGHT)),
    ("gfx1201", {**FWD, "dtype": "bf16", "mask": "generic"}, Problem(100, 130, window=BOTTOM_RIGHT)),
)


@pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: each kernel takes 20 processor seconds")
@pytest.mark.parametrize(("arch", "fields", "problem"), EVERY)
def test_every_feature(arch: str, fields: dict[str, Any], problem: Problem) -> None:
    made = compiled(arch, fields)
    error = errors(made, problem)
    assert made.report["matrix_instructions"] >= 8
    assert error.o < TOLERANCE[str(made.spec.dtype)] and error.lse < 1e-5
