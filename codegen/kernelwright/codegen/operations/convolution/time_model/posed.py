"""A convolution as programs pose it, with words of specs, and D, H and W as the C ABI has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.operations.convolution.spec import Direction
from kernelwright.codegen.violations import SpecError
from kernelwright.problems.convolution.description import ConvLayout
from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.reading import read_problem

Along = tuple[int, int, int]
"""Along D, H and W."""


@dataclass(frozen=True)
class Posed:
    """The fields of a :class:`ConvProblem` that time models read; extents and strides as in ``kw_conv_problem``."""

    direction: Direction
    dtype: DType
    layout: ConvLayout
    activation: Activation
    bias: bool
    residual: bool
    n: int
    c: int
    k: int
    groups: int
    split_k: int
    alpha: float
    beta: float
    size: Along
    filter: Along
    stride: Along
    dilation: Along
    pad_left: Along
    pad_right: Along
    stride_x: tuple[int, ...]
    stride_y: tuple[int, ...]
    out: Along  # output points

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of x, w and y."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def gemm(self) -> tuple[int, int, int]:
        """m, n and k of the implicit GEMM of a group; backward data without the points that a stride leaves out."""
        c, k, points = self.c // self.groups, self.k // self.groups, math.prod(self.filter)
        outputs = self.n * math.prod(self.out)
        if self.direction is Direction.FORWARD:
            return outputs, k, c * points
        return (outputs, c, k * points) if self.direction is Direction.BACKWARD_DATA else (k, c * points, outputs)


_WORDS = {"direction": Direction, "dtype": DType, "layout": ConvLayout, "activation": Activation}
_SAME = ("bias", "residual", "n", "c", "k", "groups", "split_k", "alpha", "beta")


def read_posed(problem: Mapping[str, Any]) -> Posed:
    """The problem of a trace's entry. SpecError for unknown fields and values that make no problem."""
    try:
        read = read_problem(ConvProblem, problem, "convolution")
    except ProblemError as error:
        raise SpecError(str(error)) from None
    words: dict[str, Any] = {name: kind(getattr(read, name)) for name, kind in _WORDS.items()}
    same = {name: getattr(read, name) for name in _SAME}
    wide: dict[str, Any] = read.in_c()
    out: Any = (1,) * (3 - len(read.out_size)) + read.out_size
    return Posed(**words, **same, size=wide.pop("extent"), **wide, out=out)
