"""Violations as the rules of attention report them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from kernelwright.codegen.violations import Violation


def wrong(rule: str, field: str, value: object, why: str, allowed: object, nearest: object) -> Iterator[Violation]:
    """Yield one violation, with values as text."""
    yield Violation(rule, field, str(value), why, str(allowed), str(nearest))


def one_of(rule: str, field: str, value: object, allowed: Sequence[object], why: str) -> Iterator[Violation]:
    """Yield one violation for a value that is not among ``allowed``; the most similar one is the nearest."""
    texts = [str(item) for item in allowed]
    close = difflib.get_close_matches(str(value), texts, n=1, cutoff=0.4)
    nearest = close[0] if close else (texts[0] if texts else "")
    yield from wrong(rule, field, value, why, ", ".join(texts), nearest)


def extent_text(values: Iterable[int]) -> str:
    """``128x64x32``."""
    return "x".join(map(str, values))
