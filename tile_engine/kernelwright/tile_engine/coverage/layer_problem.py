"""What models compute, as problems that a dispatcher plans."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LayerProblem:
    """One problem of one layer.

    :ivar operation: ``gemm``, ``convolution`` or ``attention``.
    :ivar use: what a program would call it: ``forward``, ``gradient of the input``, …
    :ivar dtype: element type of the operands.
    :ivar layer: the model and the layer that it comes from.
    :ivar problem: for :meth:`kernelwright.dispatch.Dispatcher.plan`.
    """

    operation: str
    use: str
    dtype: str
    layer: str
    problem: Any


def drawn(what: str, count: int, most: int) -> tuple[int, ...]:
    """``count`` whole numbers from 1 to ``most``, drawn with equal density of their logarithms.

    They follow from ``what`` alone, so a layer meets the same ones in every run, and no list of them exists that a set
    of kernels could be fitted to.
    """
    dice = random.Random(what)
    return tuple(round(math.exp(dice.uniform(0, math.log(most)))) for _ in range(count))
