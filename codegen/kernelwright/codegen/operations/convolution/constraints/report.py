"""Violations as the rules of convolution report them, with the nearest member of a list, and extents as text."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence

from kernelwright.arch import Triple
from kernelwright.codegen.fields import Extent
from kernelwright.codegen.violations import Violation

_SHOWN = 12


def one_of(rule: str, field: str, value: str, allowed: Sequence[str], message: str) -> Violation:
    """Report that ``value`` is not among ``allowed``; the nearest is the most similar spelling."""
    close = difflib.get_close_matches(value, allowed, n=1, cutoff=0.4)
    nearest = close[0] if close else (allowed[0] if allowed else "")
    return Violation(rule, field, value, message, ", ".join(allowed) or "nothing", nearest)


def refused(rule: str, field: str, value: object, default: object, message: str) -> Violation:
    """Report that ``field`` must keep its default."""
    return Violation(rule, field, str(value), message, str(default), str(default))


def member(rule: str, field: str, extent: Extent, listed: Iterable[Triple], message: str) -> Violation:
    """Report that ``extent`` is not among ``listed``; the nearest is the one with the most similar proportions."""
    asked = triple(extent)
    ordered = sorted(listed, key=lambda item: (_distance(item, asked), item))
    shown = ", ".join(map(text, ordered[:_SHOWN]))
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return Violation(rule, field, text(asked), message, shown + more, text(ordered[0]) if ordered else "")


def flags(rule: str, spec: object, defaults: Iterable[tuple[str, object]], message: str) -> Iterator[Violation]:
    """Yield a violation for each field of ``spec`` that differs from its default."""
    for field, default in defaults:
        value = getattr(spec, field)
        if value != default:
            yield refused(rule, field, value, default, message)


def triple(extent: Extent) -> Triple:
    """The extents as a tuple."""
    return (extent.m, extent.n, extent.k)


def text(extents: Triple) -> str:
    """``128x128x32``."""
    return "x".join(map(str, extents))


def _distance(one: Triple, other: Triple) -> float:
    return sum(math.log2(a / b) ** 2 for a, b in zip(one, other, strict=True))
