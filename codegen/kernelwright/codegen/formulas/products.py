"""Matrix products as the formulas of AMD GPUs take them, and the panels of operands that tiles share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SECOND_LAUNCH_US = 4  # from the end of a kernel to the start of the next; not measured on an AMD GPU
SUM_BYTES = 4  # bytes of a partial sum that waits in memory


@dataclass(frozen=True)
class Product:
    """A product, or a batch of them."""

    m: float
    n: float
    k: float
    batch: float
    split: float  # slices of k, at least 1


@dataclass(frozen=True)
class Problem(Product):
    """A product of operands that a batch may share, with D tensors."""

    size_a: float  # bytes of an element
    size_b: float
    size_c: float
    read_a: float  # matrices of the batch: 1 where all share it
    read_b: float
    accumulates: bool  # C is read too
    d_elements: float  # elements of all D tensors


class Panels(NamedTuple):
    """Bytes per step of k."""

    a: float
    b: float


def shared_panels(v: float, tiles_m: float, tiles_n: float, bytes_a: float, bytes_b: float) -> Panels:
    """Bytes that v concurrent tiles need, of panels of bytes_a and bytes_b, in the rectangle that needs least."""
    least_a = v * bytes_a
    least_b = v * bytes_b
    rows = 1.0
    while True:
        high = min(rows, tiles_m)
        a = high * bytes_a
        b = max(1.0, v / high) * bytes_b
        if v / high <= tiles_n and a + b < least_a + least_b:
            least_a = a
            least_b = b
        if high >= min(tiles_m, v):
            return Panels(least_a, least_b)
        rows *= 2
