"""The report page: the contents of a table, with embedded charts, as one self-contained file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from kernelwright.arch import Arch
from kernelwright.tile_engine.measuring.isolation import CRASHED, TIMED_OUT
from kernelwright.tile_engine.measuring.measure import FAILED, REFUSED, WRONG
from kernelwright.tile_engine.report import charts
from kernelwright.tile_engine.results.analysis import (
    Cells,
    Timed,
    best,
    broken,
    changes,
    fewest_instructions,
    require_same_problems,
    selection_efficiency,
    timed,
)
from kernelwright.tile_engine.results.cover import Step, greedy_cover
from kernelwright.tile_engine.results.row import peak_rates

Cost = Mapping[str, float]
"""Compile time in seconds by identity."""
_MOST_LISTED = 50  # failures or regressions
_LABELS = {
    "roofline": "Rate of the fastest kernel of each problem over operations per byte",
    "cover": "Share of the fastest kernel's speed that few kernels reach",
    "heat_map": "Share of the fastest kernel's speed, kernels over problems",
}
_ORIGIN = ("model", "layer")
_FAILURES = (WRONG, FAILED, TIMED_OUT, CRASHED)


@dataclass(frozen=True)
class Input:
    """A table and its name.

    :ivar short: short descriptions of kernels by identity, where they are known; charts have them in place of names.
    """

    name: str
    rows: Sequence[Cells]
    short: Mapping[str, str] = field(default_factory=dict)


def page(
    table: Input, columns: Sequence[str], arch: Arch | None, earlier: Input | None = None, cost: Cost | None = None
) -> str:
    """Render HTML. ``columns`` are a problem's; ``arch`` gives the roof; ``earlier`` is compared with the table.

    A table without any time has no charts. Raises ValueError for an earlier table of other problems, and for kernels
    without a ``cost`` if costs are given.
    """
    times = timed(table.rows)
    if earlier:
        require_same_problems(earlier.rows, table.rows, columns)
    before = timed(earlier.rows) if earlier else []
    steps = _cover(times, cost)
    named = [column for column in _ORIGIN if any(row.get(column) for row in table.rows)]
    held = {column: {row.get(column, "") for row in table.rows} for column in (*columns, *named)}
    context: dict[str, Any] = {
        "name": table.name,
        "arch": table.rows[0]["arch"],
        "device": table.rows[0].get("device", ""),
        "dates": sorted({row.get("date", "") for row in table.rows}),
        "counts": Counter(row["status"] for row in table.rows).most_common(),
        "kernels": len({row["identity"] for row in table.rows if row["identity"]}),
        "problems": len({row["problem_idx"] for row in table.rows}),
        "columns": [column for column, values in held.items() if len(values) > 1],
        "shared": {column: values.pop() for column, values in held.items() if len(values) == 1},
        "priced": cost is not None,
        "best": list(best(times).values()),
        "selection": selection_efficiency(times),
        "cover": steps,
        "instructions": fewest_instructions(table.rows),
        "refused": _refusals(table.rows),
        "unserved": sorted(_problems(table.rows) - _problems(row for row in table.rows if row["status"] != REFUSED)),
        "failures": [row for row in table.rows if row["status"] in _FAILURES],
        "earlier": earlier.name if earlier else "",
        "broken": broken(before, table.rows),
        "changes": changes(before, times),
        "most": _MOST_LISTED,
        "heat": {"kernels": charts.MOST_KERNELS, "problems": charts.MOST_PROBLEMS},
        "charts": {
            name: charts.svg(figure, _LABELS[name])
            for name, figure in _figures(table, times, steps, _roof(table, arch), cost).items()
        },
    }
    template = resources.files(__package__).joinpath("templates/page.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(template).render(context)


def _problems(rows: Iterable[Cells]) -> set[int]:
    return {int(row["problem_idx"]) for row in rows}


def _refusals(rows: Sequence[Cells]) -> list[tuple[str, int, int, int]]:
    """Each reason with its numbers of pairs, kernels and problems, most frequent first."""
    by_reason: dict[str, list[Cells]] = {}
    for row in rows:
        if row["status"] == REFUSED:
            by_reason.setdefault(row["reason"], []).append(row)
    counted = [
        (why, len(own), len({row["identity"] for row in own}), len(_problems(own))) for why, own in by_reason.items()
    ]
    return sorted(counted, key=lambda one: (-one[1], one[0]))


def _cover(times: Sequence[Timed], cost: Cost | None) -> list[Step]:
    """The cover by number of kernels, or by their compile time in seconds."""
    if cost is None:
        return greedy_cover(times)
    if unknown := sorted({one.identity for one in times} - set(cost)):
        raise ValueError(f"no library holds kernel {unknown[0]} ({len(unknown)} such); add its folder with --library")
    return greedy_cover(times, cost.__getitem__)


def _figures(
    table: Input, times: Sequence[Timed], steps: Sequence[Step], roof: tuple[float, float] | None, cost: Cost | None
) -> dict[str, charts.Chart]:
    """The charts by name; none without times."""
    if not times:
        return {}
    return {
        "roofline": charts.roofline(times, roof),
        "cover": charts.cover_curve(steps, "kernels" if cost is None else "compile seconds"),
        "heat_map": charts.heat_map(times, table.short),
    }


def write_pngs(table: Input, arch: Arch | None, folder: Path, cost: Cost | None = None) -> list[Path]:
    """Write each chart as a PNG file to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    times = timed(table.rows)
    for name, figure in _figures(table, times, _cover(times, cost), _roof(table, arch), cost).items():
        written.append(folder / f"{name}.png")
        charts.save_png(figure, written[-1])
    return written


def _roof(table: Input, arch: Arch | None) -> tuple[float, float] | None:
    """Peak operations and bytes per second; None if rows differ in dtype or units, or the arch states no peak."""
    dtypes = {row.get("dtype", "") for row in table.rows if row["latency_ms"]}
    units = {int(row.get("units") or 0) for row in table.rows if row["latency_ms"]}
    return peak_rates(arch, dtypes.pop(), units.pop()) if arch and len(dtypes) == len(units) == 1 else None
