"""Number of query-key pairs that take part in attention."""

from __future__ import annotations


def visible_pairs(queries: int, keys: int, window: tuple[int, int], bottom_right: bool) -> int:
    """Return the exact number of pairs of a query and a key that it sees.

    Query i is at position i or, bottom right, at i + keys - queries. It sees the keys from its position minus
    ``window[0]`` to its position plus ``window[1]``; -1 is no bound.
    """
    if queries <= 0 or keys <= 0:
        return 0
    left, right = window
    first = keys - queries if bottom_right else 0  # the position of query 0
    below = _clipped(first + right + 1, queries, keys) if right >= 0 else queries * keys
    before = _clipped(first - left, queries, keys) if left >= 0 else 0
    return below - before


def _clipped(start: int, count: int, most: int) -> int:
    """Return the sum of min(max(start + i, 0), most) for i from 0 to count - 1."""
    rising = range(max(0, -start), min(count, max(0, most - start)))  # where start + i lies between 0 and most
    inside = len(rising) * (2 * start + rising.start + rising.stop - 1) // 2 if len(rising) else 0
    return inside + most * (count - min(count, max(0, most - start)))
