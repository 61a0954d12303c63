"""Kernels that append keys, run in the simulator: every element of the caches is compared, and NaN elsewhere stays."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attention.amd.appended import Appended, appended
from attention.amd.compiled import compiled
from attention.amd.memory import TOLERANCE

ROWS: dict[str, Any] = {"family": "fwd_appendkv", "dtype": "bf16", "hdim": 64}
PAGED: dict[str, Any] = {**ROWS, "paged_kv": True, "rope": "half"}
LONG = Appended((100, 3, 64), 70, queries=3, heads=4, kv_heads=2, page_size=64, rotary_dim=64)


def check(arch: str, fields: dict[str, Any], problem: Appended) -> None:
    made = compiled(arch, fields)
    left = appended(made, problem)
    assert made.report["vgpr_spills"] == 0
    assert max(left.k, left.v, left.q) < TOLERANCE[str(made.spec.dtype)] and not left.touched


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(
    "problem", [LONG, Appended((0, 5), 1, queries=1, heads=4, kv_heads=2, page_size=16, rotary_dim=32)]
)
def test_pages(problem: Appended) -> None:
    check("gfx942", PAGED, problem)


@pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: 3 processor seconds each")
@pytest.mark.parametrize(
    ("arch", "fields", "problem"),
    [
        ("gfx942", {**ROWS, "rope": "interleaved"}, Appended((0, 37), 3, queries=5, rotary_dim=32)),
        ("gfx942", {**ROWS, "dtype": "fp16", "hdim": 128}, Appended((10, 37), 65)),
        *((arch, PAGED, LONG) for arch in ("gfx90a", "gfx950", "gfx1100", "gfx1201")),
    ],
)
def test_every_cache(arch: str, fields: dict[str, Any], problem: Appended) -> None:
    check(arch, fields, problem)
