"""The table of counts on the page docs/counts.md, out of its results file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

START, END = "<!-- counts -->", "<!-- end of counts -->"
_HEADING = "| kernel | matrix clocks | vector instructions | vector clocks | LDS clocks | registers | bound |"


def section(report: Mapping[str, Any]) -> str:
    """The tables of a report, an architecture after the other; ``a → b`` where a number changed."""
    lines = []
    for arch in dict.fromkeys(row["arch"] for row in report["results"]):
        rows = [row for row in report["results"] if row["arch"] == arch]
        lines += ["", f"**{arch}**", "", _HEADING, "|---|---|---|---|---|---|---|", *map(_line, rows)]
    return "\n".join([*lines, ""])


def written(page: str, report: Mapping[str, Any]) -> str:
    """The page with the tables of the report between its marks. ValueError for a page without a pair of marks."""
    if page.count(START) != 1 or page.count(END) != 1:
        raise ValueError(f"the page has no single pair of {START} and {END}")
    before, _, rest = page.partition(START)
    return f"{before}{START}\n{section(report)}\n{END}{rest.partition(END)[2]}"


def _line(row: Mapping[str, Any]) -> str:
    def both(key: str) -> str:
        old, new = row["before"].get(key) if row["before"] else None, row["after"][key]
        return f"{new}" if old in (None, new) else f"{old} → {new}"

    numbers = (both(key) for key in ("matrix_clocks", "vector", "vector_clocks", "lds_clocks", "registers", "bound"))
    return f"| `{row['name']}` | " + " | ".join(numbers) + " |"
