from __future__ import annotations

import pytest

from kernelwright.problems import short_names
from kernelwright.problems.short_names import register_words, short_name

GEMM = {"op": "gemm", "dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "fp32", "layout": "rcr"}
TILE = {"m": 128, "n": 128, "k": 32}


def test_kernels_are_described_in_the_words_of_their_operation() -> None:
    fused = {**GEMM, "tile": TILE, "num_d": 1, "activation": "gelu", "pipeline": "compv4"}
    assert short_name(fused, "name") == "bf16->fp32 rcr 128x128x32 compv4 +D gelu"
    conv = {"op": "convolution", "direction": "forward", "dtype": "bf16", "layout": "nhwgc", "tile": TILE}
    assert short_name(conv, "name") == "forward bf16 nhwgc 128x128x32"
    attention = {"op": "attention", "family": "fwd", "dtype": "fp16", "hdim_q": 64, "hdim_v": 128}
    assert short_name(attention, "name") == "fwd fp16 h64x128"


@pytest.mark.parametrize("spec", [{}, GEMM, {**GEMM, "tile": 3}, {"op": "made up"}, {"op": []}])
def test_an_unknown_spec_leaves_the_name(spec: dict[str, object]) -> None:
    assert short_name(spec, "name") == "name"


def test_operations_from_outside_bring_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_names, "_WORDS", dict(short_names._WORDS))
    register_words("sum", lambda spec: f"sum of {spec['count']}")
    assert short_name({"op": "sum", "count": 3}, "name") == "sum of 3"
