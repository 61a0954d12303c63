"""Attention configurations of CK Tile that compile, link and are wrong: each is shown to be, beside what is right.

docs/amd_known_bad.md names the rules. Opt-in, KERNELWRIGHT_EVERY=1: three expensive compiles of kernels that no
library has.
"""

from __future__ import annotations

import os

import pytest

from gemm.amd import compiled
from gemm.amd.attention import LOG2_E, error

pytestmark = [
    pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="KERNELWRIGHT_EVERY is not set"),
]

RIGHT = 2e-3  # of the largest element: fp16 holds 11 bits, and so do the weights that multiply V
WRONG = 2e-2


def test_transposed_loads_need_fast_exp2() -> None:
    """The scale is what upstream's MakeKargs passes for the value of the macro."""
    without = ("-UCK_TILE_FMHA_FWD_FAST_EXP2", "-DCK_TILE_FMHA_FWD_FAST_EXP2=0")
    slow = compiled.code_object("attention_gfx950", "gfx950", *without)
    fast = compiled.code_object("attention_gfx950", "gfx950")
    for queries, keys in ((128, 64), (256, 192)):
        assert error(slow, "attention", queries=queries, keys=keys, width=64, scale=64**-0.5) > WRONG
        assert error(fast, "attention", queries=queries, keys=keys, width=64, heads=2, scale=64**-0.5 * LOG2_E) < RIGHT


@pytest.mark.parametrize(("keys", "right"), [(128, True), (384, True), (333, False), (100, False), (130, False)])
def test_async_without_padding_serves_whole_tiles_of_keys_only(keys: int, right: bool) -> None:
    image = compiled.code_object("attention_gfx942", "gfx942")
    off_by = error(image, "attention", queries=200, keys=keys, width=128, scale=128**-0.5 * LOG2_E)
    assert off_by < RIGHT if right else off_by > WRONG
