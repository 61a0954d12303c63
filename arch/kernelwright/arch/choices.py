"""Sets of whole numbers as architecture files write them: a number, a list, or a range with a step."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import BeforeValidator

Triple = tuple[int, int, int]
MAX_EXTENT = 1 << 20
"""The largest value that a choice may hold; no tile is as large."""
MAX_TRIPLES = 1 << 16
"""The most triples that a list may hold; shipped files have at most 240."""


@dataclass(frozen=True)
class Choices:
    """The legal values of one extent: either listed, or ``min``, ``min + step``, … up to ``max``."""

    values: tuple[int, ...] | range

    @classmethod
    def parse(cls, raw: object) -> Choices:
        """Read ``8``, ``[8, 16]`` or ``{"min": 8, "max": 256, "step": 8}``; ValueError on anything else."""
        if isinstance(raw, Choices):
            return raw
        if _is_int(raw):
            return cls((cast(int, raw),))
        if isinstance(raw, list | tuple) and raw and all(_is_int(item) for item in raw):
            return cls(tuple(sorted(cast("list[int]", raw))))
        if isinstance(raw, dict) and set(raw) <= {"min", "max", "step"} and {"min", "max"} <= set(raw):
            low, high, step = raw["min"], raw["max"], raw.get("step", 1)
            if all(_is_int(item) for item in (low, high, step)) and 0 < low <= high <= MAX_EXTENT and step > 0:
                return cls(range(low, high + 1, step))
        raise ValueError(
            f'{raw!r} is no number, list of numbers, or {{"min", "max", "step"}} with 0 < min <= max <= 2^20'
        )

    def __contains__(self, value: int) -> bool:
        return value in self.values

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def nearest(self, value: int) -> int:
        """Return the legal value closest to ``value``; the larger one of two equally close values."""
        place = bisect.bisect_left(self.values, value)
        return min(self.values[max(place - 1, 0) : place + 1], key=lambda item: (abs(item - value), -item))

    def __str__(self) -> str:
        if isinstance(self.values, range):
            return f"{self.values[0]} to {self.values[-1]} in steps of {self.values.step}"
        return ", ".join(map(str, self.values))


def expand_triples(raw: object) -> tuple[Triple, ...]:
    """Return all (m, n, k) of a list of triples whose members are numbers, lists or ranges, in list order."""
    if not isinstance(raw, list | tuple):
        raise ValueError(f"{raw!r} is not a list of [m, n, k]")
    triples: dict[Triple, None] = {}
    for entry in raw:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise ValueError(f"{entry!r} is not [m, n, k]")
        choices = [Choices.parse(item) for item in entry]
        if len(triples) + math.prod(len(choice.values) for choice in choices) > MAX_TRIPLES:
            raise ValueError(f"{entry!r} brings the list above {MAX_TRIPLES} triples; widen a step")
        for m, n, k in itertools.product(*choices):
            triples[(m, n, k)] = None
    return tuple(triples)


def _is_int(raw: object) -> bool:
    return isinstance(raw, int) and not isinstance(raw, bool)


Triples = Annotated[tuple[Triple, ...], BeforeValidator(expand_triples)]
"""A model's field that holds triples, given as :func:`expand_triples` reads them."""

ChoicesField = Annotated[Choices, BeforeValidator(Choices.parse)]
"""A model's field that holds choices, given as :meth:`Choices.parse` reads them."""
