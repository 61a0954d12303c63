"""Kernels that read a cache, run in the simulator against float64: splits, shuffled pages, GQA, masks, odd lengths."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attention.amd.cached import Cached, split_errors, whole_errors
from attention.amd.compiled import compiled
from attention.amd.memory import TOLERANCE
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window

EVERY = pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: 5 to 20 processor seconds each")

HALF: dict[str, Any] = {"family": "fwd_splitkv", "dtype": "fp16", "hdim": 64}
BF16: dict[str, Any] = {**HALF, "dtype": "bf16", "hdim": 128}
PAGED: dict[str, Any] = {**BF16, "paged_kv": True}
SPILLS = {"gfx1201": 40}  # of its 256 registers, with head dimension 128
DECODE = Cached((1, 1), (200, 1000), page_size=128, splits=3)
ALONG_KEYS: dict[str, Any] = {
    **{"family": "fwd_splitkv", "dtype": "fp16", "hdim": 128, "pipeline": "qr_nwarp_sshuffle", "warp_tile": [16] * 6},
    **{"tile": [16, 128, 32, 128, 32, 128], "wave": [1, 4, 1, 1, 4, 1]},
}
SPLITS: tuple[tuple[str, dict[str, Any], Cached], ...] = (
    ("gfx942", HALF, Cached((70, 70), (200, 330), splits=4)),
    ("gfx942", PAGED, DECODE),
    ("gfx942", PAGED, Cached((3, 3, 3), (5, 130, 256), page_size=128, splits=9)),  # splits that see nothing
    (
        "gfx942",
        {**BF16, "group": True, "mask": "generic"},
        Cached((70, 1, 9), (130, 300, 9), splits=2, window=BOTTOM_RIGHT),
    ),
    ("gfx942", {**BF16, "bias": "alibi"}, Cached((5,), (300,), splits=2)),
    ("gfx942", {**BF16, "logits_soft_cap": True}, Cached((5,), (300,), splits=2, cap=2.0)),
    ("gfx942", ALONG_KEYS, DECODE),
    (
        "gfx942",
        {**ALONG_KEYS, "paged_kv": True, "mask": "generic"},
        Cached((3, 3), (200, 330), page_size=128, splits=4, window=BOTTOM_RIGHT),
    ),
    ("gfx90a", PAGED, DECODE),
    ("gfx950", PAGED, DECODE),
    ("gfx1201", PAGED, DECODE),
)


@EVERY
@pytest.mark.parametrize(("arch", "fields", "problem"), SPLITS)
def test_splits(arch: str, fields: dict[str, Any], problem: Cached) -> None:
    made = compiled(arch, fields)
    same = {name: fields[name] for name in ("dtype", "hdim", "group") if name in fields}
    combine = compiled(arch, {"family": "fwd_splitkv_combine", **same, "lse": True})
    error = split_errors(made, combine, problem)
    assert made.report["vgpr_spills"] <= SPILLS.get(arch, 0) and combine.report["vgpr_spills"] == 0
    assert error.o < TOLERANCE[str(made.spec.dtype)] and error.lse < 1e-5


PAGES: dict[str, Any] = {"family": "fwd_pagedkv", "dtype": "bf16", "hdim": 128, "mask": "generic"}
PREFILL: dict[str, Any] = {"family": "batch_prefill", "dtype": "bf16", "hdim": 128, "mask": "generic", "lse": True}
# LDS has room for one wave on a SIMD of gfx90a and gfx942, where CK Tile asks for two.
FEW_ROWS: dict[str, Any] = {
    **{**PREFILL, "dtype": "fp16", "tile": [64, 128, 64, 128, 64, 128]},
    **{"wave": [4, 1, 1, 4, 1, 1], "warp_tile": [16] * 6},
}
RAGGED = Cached((150, 30, 1), (300, 30, 77), page_size=16, window=BOTTOM_RIGHT)
WHOLE: tuple[tuple[str, dict[str, Any], Cached], ...] = (
    ("gfx942", PAGES, Cached((150, 150), (300, 200), page_size=128, window=BOTTOM_RIGHT)),
    ("gfx942", {**PAGES, "group": True}, Cached((150, 1), (300, 130), page_size=256, window=Window(40, 5))),
    ("gfx942", PREFILL, RAGGED),
    ("gfx942", PREFILL, Cached((150, 30, 5), (100, 30, 0), page_size=1, listed=False, window=TOP_LEFT)),
    ("gfx942", {**PREFILL, "logits_soft_cap": True}, Cached((20, 9), (130, 9), page_size=4, cap=2.0)),
    ("gfx942", FEW_ROWS, RAGGED),
    ("gfx90a", FEW_ROWS, RAGGED),
    ("gfx90a", PREFILL, RAGGED),
    ("gfx950", PREFILL, RAGGED),
    *(
        (arch, PAGES, Cached((150,), (300,), page_size=128, window=BOTTOM_RIGHT))
        for arch in ("gfx90a", "gfx950", "gfx1201")
    ),
)


@EVERY
@pytest.mark.parametrize(("arch", "fields", "problem"), WHOLE)
def test_pages(arch: str, fields: dict[str, Any], problem: Cached) -> None:
    made = compiled(arch, fields)
    error = whole_errors(made, problem)
    assert error.o < TOLERANCE[str(made.spec.dtype)] and error.lse < 1e-5
