"""The computations of models, as problems that a dispatcher plans."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LayerProblem:
    """One problem of one layer.

    :ivar operation: ``gemm``, ``convolution`` or ``attention``.
    :ivar use: its role in a program: ``forward``, ``gradient of the input``, …
    :ivar dtype: element type of the operands.
    :ivar layer: the model and the layer that it comes from.
    :ivar problem: the problem for :meth:`kernelwright.dispatch.Dispatcher.plan`.
    """

    operation: str
    use: str
    dtype: str
    layer: str
    problem: Any


def drawn(what: str, count: int, most: int) -> tuple[int, ...]:
    """``count`` integers from 1 to ``most``, drawn log-uniformly.

    They depend only on ``what``, so a layer gets the same ones in every run, and no list of them exists to which a
    kernel set could be fitted.
    """
    dice = random.Random(what)
    return tuple(round(math.exp(dice.uniform(0, math.log(most)))) for _ in range(count))
