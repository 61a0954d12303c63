from __future__ import annotations

from typing import Any

import pytest

from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.reading import read_problem

LAYER: dict[str, Any] = {"direction": "forward", "n": 1, "c": 4, "k": 4, "size": [5, 6], "filter": [3, 3]}


def test_lists_are_extents_and_what_is_left_out_follows() -> None:
    read = read_problem(ConvProblem, {**LAYER, "pad_left": [1, 1]}, "convolution")
    assert read == ConvProblem("forward", 1, 4, 4, (5, 6), (3, 3), pad_left=1) and read.pad_right == (1, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tile": 3}, "a convolution has unknown fields tile; allowed: direction, n, c"),
        ({"n": "8"}, "is no convolution: n is '8'; allowed: an integer"),
        ({"bias": 1}, "is no convolution: bias is 1; allowed: true or false"),
        ({"beta": float("inf")}, "is no convolution: beta is inf; allowed: a finite number"),
        ({"size": {}}, "is no convolution"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        read_problem(ConvProblem, {**LAYER, **fields}, "convolution")


def test_missing_fields_are_named() -> None:
    with pytest.raises(ProblemError, match="a GEMM problem lacks n, k: "):
        read_problem(GemmProblem, {"m": 3}, "GEMM problem")


def test_a_problem_is_shown_without_what_follows() -> None:
    plain = GemmProblem(64, 32, 16, dtype="bf16", dtype_a="bf16", lda=16, stride_a=0)
    assert repr(plain) == "GemmProblem(m=64, n=32, k=16, dtype='bf16')"
    padded = GemmProblem(64, 32, 16, lda=20, dtype_c="fp16")
    assert repr(padded) == "GemmProblem(m=64, n=32, k=16, dtype_c='fp16', lda=20)"
    layer = ConvProblem("forward", 1, 4, 4, (5, 6), (3, 3), pad_left=1)
    assert repr(layer) == (
        "ConvProblem(direction='forward', n=1, c=4, k=4, size=(5, 6), filter=(3, 3), pad_left=(1, 1))"
    )
