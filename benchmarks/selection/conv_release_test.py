from __future__ import annotations

import pytest
from selection.conv_release import by_tile, choices


def name(tile: str, slices: str = "") -> str:
    return f"grouped_conv_bwd_weight_bf16_ndhwgc_3d_tma_cshuffle_pingpong_{tile}x64_1x1x1_64x64x16_vec1_1_1{slices}"


def test_the_fastest_number_of_slices_counts() -> None:
    depthwise = "grouped_conv_bwd_weight_depthwise_bf16_nhwgc_2d_direct_default_default_1x1x1_1x1x1_1x1x1_vec1_1_1:8"
    us = {name("64x64", ":1"): 5.0, name("64x64", ":2"): 4.0, name("128x64"): 6.0, depthwise: 1.0}
    assert by_tile(us) == {"64x64": 4.0, "128x64": 6.0, "depthwise": 1.0}
    with pytest.raises(ValueError, match="names no tile"):
        by_tile({"gemm": 1.0})


def test_choices_grow_until_nothing_is_lost() -> None:
    problems = [{"a": 1.0, "b": 2.0, "c": 4.0}, {"a": 4.0, "b": 2.0, "c": 1.0}, {"c": 4.0, "depthwise": 1.0}]
    one, two, three = choices(problems)
    assert one[0] == pytest.approx(0.25 ** (1 / 3))  # depthwise kernels are always there
    assert two == (1.0, 1.0, ("a", "c")) and three == (1.0, 1.0, ("a", "b", "c"))
