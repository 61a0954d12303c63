"""Pairs of queries and keys: the closed form against counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.problems.attention.pairs import visible_pairs

_COUNTS = st.integers(0, 12)
_WIDTHS = st.integers(-1, 15)


@given(_COUNTS, _COUNTS, _WIDTHS, _WIDTHS, st.booleans())
def test_pairs_are_counted(queries: int, keys: int, left: int, right: int, bottom_right: bool) -> None:
    first = keys - queries if bottom_right else 0
    counted = sum(
        (left < 0 or j >= first + i - left) and (right < 0 or j <= first + i + right)
        for i in range(queries)
        for j in range(keys)
    )
    assert visible_pairs(queries, keys, (left, right), bottom_right) == counted
