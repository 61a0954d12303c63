from __future__ import annotations

from itertools import product
from typing import get_args

from kernelwright.problems import literals
from kernelwright.problems.attention.shapes import LAYOUTS
from kernelwright.problems.attention.words import Mask, QScale
from kernelwright.problems.convolution.description import ConvLayout
from kernelwright.problems.gemm.description import DOp
from kernelwright.problems.shared import Activation


def test_types_have_the_words_of_the_descriptions() -> None:
    assert get_args(literals.Activation) == tuple(word for word in Activation if word != "any")
    assert get_args(literals.DOp) == tuple(DOp)
    assert get_args(literals.ConvLayout) == tuple(ConvLayout)
    assert get_args(literals.AttentionLayout) == LAYOUTS
    assert get_args(literals.GemmLayout) == tuple(map("".join, product("rc", repeat=3)))
    assert get_args(literals.AttentionMask) == tuple(word for word in Mask if word != "generic")
    assert get_args(literals.QScale) == tuple(QScale)
