"""The tables of counts on the page docs/counts.md, from their results files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Position on the page of a table per architecture, its columns, and the cells of a row."""

    mark: str
    columns: tuple[str, ...]
    cells: Callable[[Mapping[str, Any]], str]

    @property
    def marks(self) -> tuple[str, str]:
        """Markers before and after the tables."""
        return f"<!-- {self.mark} -->", f"<!-- end of {self.mark} -->"


def section(report: Mapping[str, Any], table: Table) -> str:
    """The tables of a report, one per architecture."""
    lines = []
    heading, rule = f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"
    for arch in dict.fromkeys(row["arch"] for row in report["results"]):
        rows = [row for row in report["results"] if row["arch"] == arch]
        lines += ["", f"**{arch}**", "", heading, rule, *map(table.cells, rows)]
    return "\n".join([*lines, ""])


def written(page: str, report: Mapping[str, Any], table: Table) -> str:
    """The page with the report's tables between its markers. Raises ValueError for a page without a pair of markers."""
    start, end = table.marks
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"the page has no single pair of {start} and {end}")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n{section(report, table)}\n{end}{rest.partition(end)[2]}"


def _changed(row: Mapping[str, Any]) -> str:
    """``a → b`` if a number changed."""

    def both(key: str) -> str:
        old, new = row["before"].get(key) if row["before"] else None, row["after"][key]
        return f"{new}" if old in (None, new) else f"{old} → {new}"

    numbers = (both(key) for key in ("matrix_clocks", "vector", "vector_clocks", "lds_clocks", "registers", "bound"))
    return f"| `{row['name']}` | " + " | ".join(numbers) + " |"


def _conflicts(row: Mapping[str, Any]) -> str:
    conflicts = "–" if row["conflicts"] is None else f"{row['conflicts']:g}{' (assumed)' if row['assumed'] else ''}"
    numbers = ("–" if row[f"{unit}_clocks"] is None else f"{row[f'{unit}_clocks']:g}" for unit in _UNITS)
    return f"| `{row['name']}` | {' | '.join(numbers)} | {conflicts} | {row['bound']} | {'yes' * row['shipped']} |"


_UNITS = ("matrix", "vector", "lds", "memory")
COUNTS = Table(
    "counts",
    ("kernel", "matrix clocks", "vector instructions", "vector clocks", "LDS clocks", "registers", "bound"),
    _changed,
)
"""Columns before and after the range check of loads."""
CONFLICTS = Table(
    "conflicts", ("kernel", "matrix", "vector", "LDS", "memory", "conflicts", "bound", "essential"), _conflicts
)
"""Columns as in ``kernelwright quality``."""
