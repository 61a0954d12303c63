"""Shapes and memory strides of attention tensors: requests, heads, rows, head dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernelwright.files.proposals import closest
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.scalars import integer

Strides = tuple[int, int, int]
LAYOUTS = ("bshd", "bhsd")


class Extents(NamedTuple):
    """The extents of one tensor: the strided dimensions, then the contiguous head dimension."""

    requests: int
    heads: int
    rows: int
    hdim: int

    def span(self, strides: Strides) -> int:
        """Return the number of elements from the first to behind the last one, gaps included."""
        if 0 in self:
            return 0
        return sum((e - 1) * s for e, s in zip(self[:3], strides, strict=True)) + self.hdim

    def dense(self, layout: str) -> Strides:
        """Return strides without gaps, in the order of ``layout``; 0 along extents below 2, where they mean nothing."""
        rows, heads = max(self.rows, 1), max(self.heads, 1)
        inner = (self.hdim, heads * self.hdim) if layout == "bshd" else (rows * self.hdim, self.hdim)
        return self.normal((rows * heads * self.hdim, *inner))

    def normal(self, strides: Sequence[int]) -> Strides:
        """Return strides by which equal tensors compare equal: 0 along extents below 2 and for empty arrays."""
        request, head, row = (0 if e < 2 or 0 in self else s for s, e in zip(strides, self[:3], strict=True))
        return request, head, row


def read_strides(field: str, given: Sequence[int] | None, extents: Extents, layout: str) -> Strides:
    """Return the given strides of a tensor, or those of a dense one. ProblemError if ``given`` is not legal."""
    if layout not in LAYOUTS:
        raise ProblemError(f"layout is {layout!r}{closest(layout, LAYOUTS)}; allowed: {', '.join(LAYOUTS)}")
    if given is None:
        return extents.dense(layout)
    if len(given) != 3:
        raise ProblemError(f"{field} is {tuple(given)}; allowed: three strides, of requests, heads and rows")
    return extents.normal([integer(field, each, 0) for each in given])
