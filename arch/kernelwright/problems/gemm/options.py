"""The keywords of calls that describe a product beside its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from kernelwright.problems.literals import Activation, DOp, GemmLayout


class GemmOptions(TypedDict, total=False):
    """What :meth:`Dispatcher.gemm` takes besides arrays and a stream, and what reads its problem takes, too.

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
