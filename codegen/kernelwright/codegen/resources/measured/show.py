"""Counted and measured numbers of a kernel side by side, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.codegen.resources.quality_columns import cell

HEADINGS = ("counter", "counted", "measured", "of a launch")
PROBLEM_HEADINGS = ("us", "TFLOP/s", "of bound %", "roofline", "problem")


def measured_text(row: Mapping[str, Any]) -> str | None:
    """Return the counters and problems of a row, one line each; None if nothing was measured."""
    measured = row["measured"]
    if measured is None:
        return None
    lines = [f"{row['name']}: {summary(row)}"]
    if measured["counters"]:
        lines += _table([HEADINGS, *counter_cells(measured)], named=0)
    if measured["problems"]:
        lines += _table([PROBLEM_HEADINGS, *problem_cells(measured)], named=len(PROBLEM_HEADINGS) - 1)
    return "\n".join(lines)


def summary(row: Mapping[str, Any]) -> str:
    """Summarise the measurements in one line."""
    measured = row["measured"]
    parts = []
    if measured["launches"]:
        parts.append(f"{measured['launches']} launch{'es' * (measured['launches'] != 1)}")
    if measured["us"] is not None:
        parts.append(f"{measured['us']:.3f} us")
    if measured["waves"]:
        parts.append(f"{measured['waves']:.0f} waves")
    if measured["waves"] and measured["turns"]:
        parts.append(f"{measured['turns'] / measured['waves']:.1f} turns of each")
    if measured["problems"]:
        parts.append(f"{len(measured['problems'])} problem{'s' * (len(measured['problems']) != 1)}")
    if row["bound_share_percent"] is not None:
        parts.append(f"{row['bound_share_percent']} % of its bound ({row['bound']})")
    if measured["helpers"]:
        parts.append(f"and {sum(measured['helpers'].values())} launches of its other functions")
    return ", ".join(parts)


def counter_cells(measured: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of cells for each counter: counted and measured per wave and iteration, and per launch."""
    return [
        (name, cell(one["counted"]), cell(one["measured"]), cell(round(one["launch"], 2)))
        for name, one in measured["counters"].items()
    ]


def problem_cells(measured: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of cells for each problem that was timed."""
    keys = ("us", "tflops", "bound_share_percent", "roofline")
    return [
        (
            *(cell(one.get(key)) for key in keys),
            " ".join(f"{key}={value}" for key, value in one.items() if key not in keys),
        )
        for one in measured["problems"]
    ]


def _table(rows: Sequence[Sequence[str]], named: int) -> list[str]:
    """Return aligned lines; the column ``named`` is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            one.ljust(width) if at == named else one.rjust(width)
            for at, (one, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
