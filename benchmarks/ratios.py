"""Ratios of interleaved times to the fastest of the reference's calls, and their summaries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def fastest(times: Mapping[str, Sequence[float]], names: Iterable[str]) -> str:
    """The call with the smallest median time, among ``names``."""
    return min(names, key=lambda name: statistics.median(times[name]))


def ratios(reference: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Per round, the reference's time ÷ ours: above 1 if ours is faster."""
    return [theirs / own for theirs, own in zip(reference, ours, strict=True)]


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of one or more positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Number of shapes, geometric mean and worst of the median ratios, by set of shapes and operation.

    Results without a ratio are counted by their ``state``: "unequal" outputs, "not served" by any kernel, or "no
    reference" if torch refuses the problem. ``worst`` is the result with the smallest ratio, ``slower`` counts ratios
    below 1. Mean and worst are None if no result has a ratio.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["set"], result["what"]), []).append(result)
    return [{"set": key[0], "what": key[1], **_summed(group)} for key, group in groups.items()]


def _summed(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    measured = [result for result in group if "ratio" in result]
    medians = [result["ratio"]["median"] for result in measured]
    worst = min(measured, key=lambda result: result["ratio"]["median"], default=None)
    states = {state: sum(result.get("state") == state for result in group) for state in STATES}
    return {
        "shapes": len(measured),
        "geometric_mean": geometric_mean(medians) if medians else None,
        "slower": sum(median < 1 for median in medians),
        "worst": worst and {key: worst[key] for key in ("m", "n", "k", "ratio")},
        **{state: count for state, count in states.items() if count},
    }


UNEQUAL, NOT_SERVED, NO_REFERENCE = STATES = ("unequal", "not served", "no reference")
