"""Functions that formulas may call, besides ``min``, ``max``, ``abs`` and those of formulas."""

from __future__ import annotations

import math


def ceil(value: float) -> float:
    """The smallest whole number that is at least ``value``."""
    return float(math.ceil(value))


def floor(value: float) -> float:
    """The largest whole number that is at most ``value``."""
    return float(math.floor(value))
