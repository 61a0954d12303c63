"""Which keys a query sees, and biases that depend on the places of query and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Window:
    """Query i sees the keys from i - left to i + right; -1 stands for no bound.

    ``bottom_right``: i counts so that the last query stands at the last key; otherwise the first one at the first.
    Causal masks are windows without an end on the left and with ``right`` 0.
    """

    left: int = -1
    right: int = -1
    bottom_right: bool = False


FULL = Window()
TOP_LEFT = Window(right=0)
BOTTOM_RIGHT = Window(right=0, bottom_right=True)


def places(queries: int, keys: int, bottom_right: bool) -> Array:
    """The place of each query among the keys, as a column."""
    return np.arange(queries)[:, None] + (keys - queries if bottom_right else 0)


def visible(queries: int, keys: int, window: Window) -> Array:
    """Truth values, queries x keys."""
    distance = np.arange(keys)[None, :] - places(queries, keys, window.bottom_right)
    seen = np.ones((queries, keys), bool)
    if window.left >= 0:
        seen &= distance >= -window.left
    if window.right >= 0:
        seen &= distance <= window.right
    return seen


def alibi(queries: int, keys: int, slopes: Array, bottom_right: bool = True) -> Array:
    """-slope * |place of the query - place of the key|, heads x queries x keys.

    Source: Press, Smith, Lewis, "Train Short, Test Long", 2022; queries stand at the end of the keys, as in decoding.
    """
    distance = np.abs(places(queries, keys, bottom_right) - np.arange(keys)[None, :])
    return -slopes.astype(np.float64)[:, None, None] * distance
