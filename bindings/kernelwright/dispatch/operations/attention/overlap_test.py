"""Tensors side by side: what is said to be apart has no element in common."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.dispatch.operations.attention.overlap import Placed, interleave
from kernelwright.problems.attention.shapes import Extents


def addresses(tensor: Placed, first: int) -> set[int]:
    ranges = [range(extent) for extent in tensor.extents]
    steps = (*tensor.strides, 1)
    return {first + sum(map(int.__mul__, place, steps)) for place in itertools.product(*ranges)}


def test_known_layouts() -> None:
    rows = Placed(Extents(2, 4, 6, 16), (6 * 192, 16, 192), 4)  # Q, K and V of one projection
    assert interleave(rows, rows, 4 * 64) and interleave(rows, rows, -4 * 128)
    assert not interleave(rows, rows, 4 * 16) and not interleave(rows, rows, 0) and not interleave(rows, rows, 2)
    pages = Placed(Extents(9, 2, 16, 64), (2 * 2048, 64, 128), 2)  # K and V in one page
    assert interleave(pages, pages, 2 * 2048)


@given(
    st.tuples(*[st.integers(1, 3)] * 4), st.tuples(*[st.integers(1, 3)] * 4), st.tuples(*[st.integers(0, 9)] * 3),
    st.integers(-30, 30),
)  # fmt: skip
def test_what_is_apart_is_apart(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int], strides: tuple[int, int, int], distance: int
) -> None:
    a, b = Placed(Extents(*one), strides, 4), Placed(Extents(*other), strides, 4)
    if interleave(a, b, 4 * distance):
        assert not addresses(a, 0) & addresses(b, distance)
