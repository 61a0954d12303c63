"""Problems of table rows: records as operations read them, and rates that a row may lack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.results.analysis import Cells


def record_of(operation: Measurable, cells: Cells) -> Record:
    """The problem of a row. Raises ValueError for a row of no problem of the operation."""
    return operation.read({column: _value(cells[column]) for column in operation.columns})


def with_rates(rows: Iterable[Cells], operation: Measurable) -> list[Cells]:
    """The rows; those with a time but no memory rate get both rates, which follow from time and problem."""
    return [
        {**cells, **_rates(operation, cells)} if cells["latency_ms"] and not cells["bandwidth_gb_s"] else cells
        for cells in rows
    ]


def _rates(operation: Measurable, cells: Cells) -> dict[str, str]:
    record, seconds = record_of(operation, cells), float(cells["latency_ms"]) / 1e3
    flops, moved = operation.flops(record), operation.bytes_moved(record)
    return {"tflops": f"{flops / seconds / 1e12:.5g}", "bandwidth_gb_s": f"{moved / seconds / 1e9:.5g}"}


def _value(cell: str) -> Any:
    """The cell's number if it holds one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
