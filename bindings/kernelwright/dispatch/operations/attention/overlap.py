"""Tensors whose spans overlap may still share no element, such as K and V side by side in one cache."""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.problems.attention.shapes import Extents, Strides


class Placed(NamedTuple):
    """A strided tensor with elements of ``itemsize`` bytes."""

    extents: Extents
    strides: Strides
    itemsize: int


def interleave(a: Placed, b: Placed, distance: int) -> bool:
    """Whether no byte belongs to both, with b starting ``distance`` bytes after a. False may mean unknown.

    Both are treated as one tensor with a further dimension of extent 2: sorted by stride, each dimension must step over
    everything that the previous ones span.
    """
    if a.itemsize != b.itemsize or distance % a.itemsize:
        return False
    dims = [(abs(distance) // a.itemsize, 2)]
    for one, other, s, t in zip(a.extents[:3], b.extents[:3], a.strides, b.strides, strict=True):
        if one > 1 and other > 1 and s != t:
            return False
        dims.append((max(s, t), max(one, other)))
    span = max(a.extents.hdim, b.extents.hdim)
    for stride, extent in sorted(dims):
        if extent < 2:
            continue
        if stride < span:
            return False
        span += (extent - 1) * stride
    return True
