"""The report of ``kernelwright quality`` as one self-contained HTML page: bars and numbers of each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2

from kernelwright.codegen.resources.measured.show import (
    HEADINGS,
    PROBLEM_HEADINGS,
    counter_cells,
    problem_cells,
    summary,
)
from kernelwright.codegen.resources.quality_columns import COLUMNS, cell
from kernelwright.files.counts.turn import UNITS


def page(libraries: Sequence[Mapping[str, Any]]) -> str:
    """Return the HTML of rows made by ``kernelwright.codegen.resources.quality.describe``."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = files("kernelwright.codegen.resources").joinpath("templates", "quality.html.jinja").read_text("utf-8")
    shown = [
        {
            **one,
            "columns": _columns(one["kernels"]),
            "bars": _bars(one["kernels"]),
            "measured": _measured(one["kernels"]),
        }
        for one in libraries
    ]
    columns = _columns([row for one in libraries for row in one["kernels"]])
    return environment.from_string(template).render(libraries=shown, columns=columns, units=UNITS, cell=cell)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [column for column in COLUMNS if any(row[column.key] is not None for row in rows)]


def _measured(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return name, summary line and tables with headings of each measured kernel."""
    entries = []
    for row in rows:
        measured = row["measured"]
        if measured is not None:
            tables = [(HEADINGS, counter_cells(measured)), (PROBLEM_HEADINGS, problem_cells(measured))]
            entries.append({"name": row["name"], "summary": summary(row), "tables": [one for one in tables if one[1]]})
    return entries


def _bars(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the clocks of each unit, in percent of the bounding unit's, for each kernel with counts."""
    bars = []
    for row in rows:
        taken = (row["counts"] or {}).get("clocks")
        if taken and row["bound"]:
            most = taken[row["bound"]] or 1
            shares = {unit: round(100 * taken[unit] / most) for unit in UNITS if unit in taken}
            bars.append({"name": row["name"], "bound": row["bound"], "shares": shares, "clocks": taken})
    return bars
