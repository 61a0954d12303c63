"""Keyword arguments of calls that describe a product, besides its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from kernelwright.problems.literals import Activation, DOp, GemmLayout


class GemmOptions(TypedDict, total=False):
    """Keyword arguments of :meth:`Dispatcher.gemm` and of readers of its problem, besides arrays and a stream.

    Meanings and defaults are those of :meth:`Dispatcher.gemm`.
    """

    ds: Sequence[Any]
    bias: Any
    d_op: DOp
    activation: Activation
    alpha: float
    beta: float
    layout: GemmLayout | None
    split_k: int
