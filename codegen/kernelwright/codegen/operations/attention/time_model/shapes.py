"""Extents and strides of attention tensors: requests, heads, rows, head dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Strides = tuple[int, int, int]
"""Strides of requests (or pages), heads and rows, in elements."""


class Extents(NamedTuple):
    """The extents of one tensor: those that strides lead along, then the contiguous head dimension."""

    requests: int
    heads: int
    rows: int
    hdim: int

    def strides(self, given: Sequence[int] | None, rows_inside: bool = False) -> Strides:
        """What a problem states, or those of a dense tensor; 0 along extents below 2.

        Dense tensors have heads inside of rows, with ``rows_inside`` rows inside of heads. ValueError for what are no
        strides.
        """
        heads, rows, hdim = max(self.heads, 1), max(self.rows, 1), self.hdim
        inner = (rows * hdim, hdim) if rows_inside else (hdim, heads * hdim)
        found = (rows * heads * hdim, *inner) if given is None else tuple(given)
        if len(found) != 3 or not all(type(one) is int and one >= 0 for one in found):
            raise ValueError(f"strides are {given!r}; allowed: those of requests, heads and rows")
        request, head, row = (0 if e < 2 or 0 in self else s for s, e in zip(found, self[:3], strict=True))
        return request, head, row
