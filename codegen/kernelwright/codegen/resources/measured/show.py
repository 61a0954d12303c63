"""Counted and measured numbers of a kernel side by side, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.codegen.resources.quality_columns import cell

HEADINGS = ("counter", "counted", "measured", "of a launch")
PROBLEM_HEADINGS = ("us", "TFLOP/s", "of bound %", "roofline", "problem")


def measured_text(row: Mapping[str, Any]) -> str | None:
    """The counters and the problems of a row, each a line; None if nothing was measured."""
    found = row["measured"]
    if found is None:
        return None
    lines = [f"{row['name']}: {summary(row)}"]
    if found["counters"]:
        lines += _table([HEADINGS, *counter_cells(found)], named=0)
    if found["problems"]:
        lines += _table([PROBLEM_HEADINGS, *problem_cells(found)], named=len(PROBLEM_HEADINGS) - 1)
    return "\n".join(lines)


def summary(row: Mapping[str, Any]) -> str:
    """What was measured, in one line."""
    found = row["measured"]
    parts = []
    if found["launches"]:
        parts.append(f"{found['launches']} launch{'es' * (found['launches'] != 1)}")
    if found["us"] is not None:
        parts.append(f"{found['us']:.3f} us")
    if found["waves"]:
        parts.append(f"{found['waves']:.0f} waves")
    if found["waves"] and found["turns"]:
        parts.append(f"{found['turns'] / found['waves']:.1f} turns of each")
    if found["problems"]:
        parts.append(f"{len(found['problems'])} problem{'s' * (len(found['problems']) != 1)}")
    if row["bound_share_percent"] is not None:
        parts.append(f"{row['bound_share_percent']} % of its bound ({row['bound']})")
    if found["helpers"]:
        parts.append(f"and {sum(found['helpers'].values())} launches of its other functions")
    return ", ".join(parts)


def counter_cells(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row of cells for each counter: counted and measured of a wave and turn, and all of a launch."""
    return [
        (name, cell(one["counted"]), cell(one["measured"]), cell(round(one["launch"], 2)))
        for name, one in found["counters"].items()
    ]


def problem_cells(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row of cells for each problem that was timed."""
    keys = ("us", "tflops", "bound_share_percent", "roofline")
    return [
        (
            *(cell(one.get(key)) for key in keys),
            " ".join(f"{key}={value}" for key, value in one.items() if key not in keys),
        )
        for one in found["problems"]
    ]


def _table(rows: Sequence[Sequence[str]], named: int) -> list[str]:
    """Aligned lines; the column ``named`` is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            one.ljust(width) if at == named else one.rjust(width)
            for at, (one, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
