from __future__ import annotations

import ctypes

import pytest

from kernelwright.problems.convolution import description as convolution
from kernelwright.problems.convolution.structs import ConvProblem, ConvTraits
from kernelwright.problems.gemm import description as gemm
from kernelwright.problems.gemm.structs import GemmProblem
from kernelwright.problems.structs import make, values


def test_words_are_numbers_in_structs_and_words_again() -> None:
    words = dict.fromkeys(("dtype_x", "dtype_w", "dtype_y", "dtype_acc"), "bf16") | {"layout": "ngchw"}
    given = {**words, "activation": "relu", "extent": (1, 5, 6), "c": 7}
    made = make(ConvProblem, convolution.PROBLEM, 17, dict(given))
    assert (made.struct_size, made.op, made.layout, made.dtype_w) == (ctypes.sizeof(ConvProblem), 17, 3, 3)
    read = values(made, convolution.PROBLEM)
    assert {name: read[name] for name in given} == given
    assert read["stride_x"] == (0,) * 5, "what is not given is 0"


def test_heads_are_those_of_problems_alone() -> None:
    assert (GemmProblem.struct_size.offset, GemmProblem.op.offset, GemmProblem.dtype_a.offset) == (0, 4, 8)
    assert not hasattr(ConvTraits, "op") and ConvTraits.struct_size.offset == 0


def test_unknown_words_are_no_numbers() -> None:
    with pytest.raises(KeyError):
        make(GemmProblem, gemm.PROBLEM, 1, {"dtype_a": "fp12"})
