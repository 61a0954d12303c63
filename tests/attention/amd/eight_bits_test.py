"""Kernels of 8-bit operands run in the simulator, against float64: factors in device memory, masks, GQA, caches."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attention.amd.appended import Appended, appended
from attention.amd.cached import Cached, split_errors, whole_errors
from attention.amd.compiled import compiled
from attention.amd.launches import Problem, errors
from attention.amd.memory import NARROW
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window

EVERY = pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: 10 to 20 processor seconds each")
ARCHS = ("gfx942", "gfx950", "gfx1201")

FWD: dict[str, Any] = {"family": "fwd", "dtype": "fp8bf16", "hdim": 64, "qscale": "per_tensor"}
CAUSAL: dict[str, Any] = {**FWD, "mask": "generic", "lse": True}


@EVERY
@pytest.mark.parametrize(
    "problem",
    [
        Problem(150, 200, heads=4, kv_heads=2, window=BOTTOM_RIGHT),
        Problem(3, 70, batch=2, window=Window(20, 5)),
        Problem(140, 10, window=BOTTOM_RIGHT),  # most queries see nothing
    ],
)
def test_forward(problem: Problem) -> None:
    made = compiled("gfx942", CAUSAL)
    error = errors(made, problem)
    assert made.report["matrix_instructions"] >= 16
    assert error.o < NARROW and error.lse < 1e-4


FORWARD: tuple[tuple[dict[str, Any], Problem], ...] = (
    (CAUSAL, Problem(150, 200, heads=4, kv_heads=2, window=BOTTOM_RIGHT)),
    ({**FWD, "hdim": 128, "dtype": "fp8fp32", "lse": True}, Problem(130, 200, heads=2)),
    ({**FWD, "hdim": 128, "dtype": "fp8", "mask": "generic"}, Problem(90, 130, window=Window(20, 5))),
    ({**FWD, "hdim": 256}, Problem(70, 130)),
    ({**FWD, "hdim": 128, "bias": "elementwise"}, Problem(100, 130, heads=4, kv_heads=2)),
    ({**FWD, "hdim": 128, "bias": "alibi", "mask": "generic"}, Problem(100, 130, window=TOP_LEFT)),
    ({**FWD, "hdim": 64, "logits_soft_cap": True}, Problem(100, 130, cap=2.0)),
    ({**FWD, "hdim": 128, "qscale": "none", "dtype": "fp8fp32"}, Problem(100, 130)),
)
# Pipelines of CDNA that no table lists for 8 bits.
ASYNC: dict[str, Any] = {**FWD, "hdim": 128, "mask": "generic", "lse": True, "pad": [True] * 4}
PREFILL: dict[str, Any] = {**FWD, "family": "batch_prefill", "hdim": 128, "lse": True, "warp_tile": [32] * 6}


@EVERY
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("fields", "problem"), FORWARD)
def test_every_feature(arch: str, fields: dict[str, Any], problem: Problem) -> None:
    made = compiled(arch, fields)
    error = errors(made, problem)
    assert made.report["matrix_instructions"] >= 8
    assert error.o < NARROW and error.lse < 1e-4


@EVERY
@pytest.mark.parametrize("arch", ARCHS[:2])
@pytest.mark.parametrize("pipeline", ["qr_async", "qs"])
def test_other_pipelines(arch: str, pipeline: str) -> None:
    error = errors(compiled(arch, {**ASYNC, "pipeline": pipeline}), Problem(130, 200, window=BOTTOM_RIGHT))
    assert error.o < NARROW and error.lse < 1e-4


@EVERY
@pytest.mark.parametrize("arch", ARCHS[:2])
@pytest.mark.parametrize("dtype", ["fp8bf16", "fp8"])
def test_batch_prefill(arch: str, dtype: str) -> None:
    made = compiled(arch, {**PREFILL, "dtype": dtype, "mask": "generic"})
    error = whole_errors(made, Cached((70, 3), (200, 330), page_size=16, window=BOTTOM_RIGHT))
    assert error.o < NARROW and error.lse < 1e-4


SPLIT: dict[str, Any] = {"family": "fwd_splitkv", "dtype": "fp8", "hdim": 128, "static_quant": True}
COMBINE: dict[str, Any] = {"family": "fwd_splitkv_combine", "dtype": "fp8", "hdim": 128, "static_quant": True}
PAGED: dict[str, Any] = {"family": "fwd_pagedkv", "dtype": "fp8", "hdim": 64, "static_quant": True}
APPEND: dict[str, Any] = {"family": "fwd_appendkv", "dtype": "fp8", "hdim": 128}


@EVERY
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("fields", "combine", "problem"),
    [
        ({**SPLIT, "mask": "generic"}, COMBINE, Cached((70, 70), (200, 330), splits=3, window=BOTTOM_RIGHT)),
        ({**SPLIT, "logits_soft_cap": True}, {**COMBINE, "dtype": "bf16", "static_quant": False, "lse": True},
         Cached((3, 3), (5, 330), splits=3, cap=2.0)),
    ],
)  # fmt: skip
def test_splits(arch: str, fields: dict[str, Any], combine: dict[str, Any], problem: Cached) -> None:
    error = split_errors(compiled(arch, fields), compiled(arch, combine), problem)
    assert error.o < NARROW and error.lse < 1e-4


@EVERY
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (PAGED, Cached((70, 3), (200, 330), page_size=128)),
        ({**PAGED, "dtype": "fp8bf16", "mask": "generic"}, Cached((70, 3), (200, 330), page_size=64, window=TOP_LEFT)),
    ],
)
def test_pages(arch: str, fields: dict[str, Any], problem: Cached) -> None:
    made = compiled(arch, {**fields, "group": True})
    assert whole_errors(made, problem).o < NARROW


@EVERY
@pytest.mark.parametrize("arch", ARCHS)
def test_append(arch: str) -> None:
    left = appended(compiled(arch, APPEND), Appended((10, 37), 65))
    assert max(left.k, left.v) == 0 and not left.touched
