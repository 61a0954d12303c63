"""Ratios of the CPU's GEMM calls, and their geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from ratios import geometric_mean, ratios

SMALL = 64  # maximum of all extents
# References of each of our calls.
REFERENCES = {
    "fp32": "numpy fp32", "fp32 bound": "numpy fp32",
    "bf16": "torch bf16", "bf16 bound": "torch bf16",
    "int8": "torch int8", "int8 bound": "torch int8",
    "fp16": "fp32", "fp16 bound": "fp32 bound",
}  # fmt: skip


def figures(seconds: dict[str, list[float]], work: int) -> dict[str, Any]:
    """Microseconds, rates and ratios (reference ÷ ours) of one shape, from the minimum seconds of each round."""
    speedups = {
        ours: ratios(seconds[reference], seconds[ours])
        for ours, reference in REFERENCES.items()
        if ours in seconds and reference in seconds
    }
    return {
        "microseconds": {name: _spread([value * 1e6 for value in values]) for name, values in seconds.items()},
        "gflops": {name: round(2e-9 * work / statistics.median(values), 1) for name, values in seconds.items()},
        "ratios": {ours: round(statistics.median(values), 3) for ours, values in speedups.items()},
        "ratio_spread": {ours: _spread(values) for ours, values in speedups.items()},
    }


def _spread(values: Sequence[float]) -> list[float]:
    """Median, minimum, maximum."""
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def geometric_means(results: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Geometric means of ratios over all shapes, and for fp32 over small ones alone; None if there are none."""

    def mean(ours: str, largest: float = math.inf) -> float | None:
        speedups = [r["ratios"][ours] for r in results if ours in r["ratios"] and max(r["shape"]) <= largest]
        return round(geometric_mean(speedups), 3) if speedups else None

    means = {f"{ours} to {reference}": mean(ours) for ours, reference in REFERENCES.items()}
    small = {f"{ours} to numpy fp32, small": mean(ours, SMALL) for ours in ("fp32", "fp32 bound")}
    return {**means, **small}
