"""Grouped convolution in float64, tap by tap: what kernels of every backend are compared with.

Arrays are channels-last: x (n, *extent, groups, c), w (groups, k, *filter, c), y (n, *out, groups, k), with channels of
one group as c and k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """A convolution of one, two or three spatial dimensions; ``c`` and ``k`` are channels of one group."""

    n: int
    c: int
    k: int
    extent: tuple[int, ...]
    filter: tuple[int, ...]
    groups: int = 1
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        dims = len(self.extent)
        for name, usual in (("stride", 1), ("dilation", 1), ("left", 0)):
            if not getattr(self, name):
                object.__setattr__(self, name, (usual,) * dims)
        if not self.right:
            object.__setattr__(self, "right", self.left)

    @property
    def out(self) -> tuple[int, ...]:
        """Output points along each dimension."""
        each = zip(self.extent, self.filter, self.stride, self.dilation, self.left, self.right, strict=True)
        return tuple((e + low + high - d * (f - 1) - 1) // s + 1 for e, f, s, d, low, high in each)

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Of x and dx."""
        return (self.n, *self.extent, self.groups, self.c)

    @property
    def w_shape(self) -> tuple[int, ...]:
        """Of w and dw."""
        return (self.groups, self.k, *self.filter, self.c)

    @property
    def y_shape(self) -> tuple[int, ...]:
        """Of y and dy."""
        return (self.n, *self.out, self.groups, self.k)

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each filter point, and where in the padded image the outputs meet it."""
        for tap in itertools.product(*map(range, self.filter)):
            starts = [t * d for t, d in zip(tap, self.dilation, strict=True)]
            each = zip(starts, self.out, self.stride, strict=True)
            yield tap, tuple(slice(start, start + (out - 1) * s + 1, s) for start, out, s in each)

    def padded(self, x: np.ndarray) -> np.ndarray:
        """x in float64, with zeros around."""
        around = [(0, 0), *zip(self.left, self.right, strict=True), (0, 0), (0, 0)]
        return np.pad(x.astype(np.float64), around)


def forward(shape: Shape, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """y in float64."""
    image, weights, y = shape.padded(x), w.astype(np.float64), np.zeros(shape.y_shape)
    for tap, where in shape.taps():
        y += np.einsum("...gc,gkc->...gk", image[(slice(None), *where)], weights[(..., *tap, slice(None))])
    return y


def backward_data(shape: Shape, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    """dx in float64; 0 where no output used a point."""
    padded = shape.padded(np.zeros(shape.x_shape))
    gradient, weights = dy.astype(np.float64), w.astype(np.float64)
    for tap, where in shape.taps():
        padded[(slice(None), *where)] += np.einsum("...gk,gkc->...gc", gradient, weights[(..., *tap, slice(None))])
    inside = tuple(slice(low, low + extent) for low, extent in zip(shape.left, shape.extent, strict=True))
    return padded[(slice(None), *inside)]


def backward_weight(shape: Shape, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """dw in float64."""
    image, dw = shape.padded(x), np.zeros(shape.w_shape)
    points = shape.n * math.prod(shape.out)
    gradient = dy.astype(np.float64).reshape(points, shape.groups, shape.k)
    for tap, where in shape.taps():
        met = image[(slice(None), *where)].reshape(points, shape.groups, shape.c)
        dw[(slice(None), slice(None), *tap)] = np.einsum("pgk,pgc->gkc", gradient, met)
    return dw
