from __future__ import annotations

from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.operations.convolution.ck_tile import context, waves_per_simd
from kernelwright.codegen.operations.convolution.spec import conv_spec
from kernelwright.codegen.operations.convolution.testing.strategies import LEGAL
from kernelwright.codegen.selecting.specs import parse_kernel

MEM: dict[str, Any] = {**LEGAL, "pipeline": "mem", "vector": [8, 1, 1]}
FP32 = {"dtype": "fp32", "warp_tile": [32, 32, 8], "vector": [4, 4, 4]}
SMALL = {"warp_tile": [16, 16, 32]}


@pytest.mark.parametrize(
    ("arch", "fields", "waves"),
    [
        # 34,816 bytes of LDS: one workgroup of four waves fits into 64 KB, four into 160 KB.
        ("gfx942", {**MEM, **SMALL, "tile": [256, 16, 64], "wave": [4, 1, 1]}, 1),
        ("gfx950", {**MEM, **SMALL, "tile": [256, 16, 64], "wave": [4, 1, 1]}, 2),
        ("gfx942", {**MEM, "tile": [64, 64, 64], "wave": [2, 2, 1], "vector": [8, 8, 8]}, 2),
        # Two waves: 18,432 bytes fit three times, which is two waves on two of four SIMDs; 24,576 fit twice.
        ("gfx942", {**MEM, **SMALL, "tile": [128, 16, 64], "wave": [2, 1, 1]}, 2),
        ("gfx942", {**LEGAL, **FP32, "pipeline": "compv1", "tile": [64, 128, 32], "wave": [1, 2, 1]}, 1),
        # A workgroup that is to have all registers.
        ("gfx942", LEGAL, 1),
    ],
)
def test_bounds_promise_no_more_waves_than_lds_lets_in(arch: str, fields: dict[str, Any], waves: int) -> None:
    kernel = parse_kernel(fields, load(arch))
    assert waves_per_simd(conv_spec(kernel), load(arch)) == waves
    assert context(kernel, load(arch))["waves_per_simd"] == waves
