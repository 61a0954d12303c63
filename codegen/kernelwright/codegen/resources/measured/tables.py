"""Tables of runs on hardware: those of rocprof, and those of ``kernelwright tile-engine bench``.

Formats: ``counter_collection.csv`` and ``kernel_trace.csv`` of rocprofv3 (ROCprofiler-SDK, "Using rocprofv3"), one row
per counter or launch; the table of rocprof's first version, one row per launch, one column per counter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.codegen.resources.report import ReportError
from kernelwright.files.csv_table import columns_of, read_text, rows_of

BENCH = ("kernel", "identity", "arch", "latency_ms", "tflops", "status")
"""Columns that are read of a ``kernelwright tile-engine bench`` table, besides the problem's own."""

# Columns of rocprof's first version that are not counters.
_LAUNCH_V1 = frozenset(
    (
        *("Index", "KernelName", "gpu-id", "queue-id", "queue-index", "pid", "tid", "grd", "wgr", "lds", "scr", "vgpr"),
        *("arch_vgpr", "accum_vgpr", "sgpr", "fbar", "wave_size", "sig", "obj"),
        *("DispatchNs", "BeginNs", "EndNs", "CompleteNs", "DurationNs"),
    )
)
_CLONE = re.compile(r"( \[clone \.kd\]|\.kd)$")


@dataclass(frozen=True)
class Launch:
    """One launch: the device function, its grid, microseconds if known, and counters of all waves by name."""

    function: str
    grid: str
    us: float | None
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """A kernel on a problem: ``cells`` of its row, microseconds, TFLOP/s."""

    kernel: str
    identity: str
    us: float
    tflops: float | None
    cells: Mapping[str, str]


def read_table(path: Path) -> list[Launch] | list[Timing]:
    """Read the launches or timings of a file. ReportError for another table, and for a cell that is not a number."""
    try:
        text = read_text(path)
        columns = columns_of(text, path)
        rows = rows_of(text, path)
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from None
    if {"Kernel_Name", "Counter_Name", "Counter_Value", "Dispatch_Id"} <= set(columns):
        return _collected(path, rows)
    if {"Kernel_Name", "Start_Timestamp", "End_Timestamp"} <= set(columns):
        return [Launch(_function(row["Kernel_Name"]), _grid(row), _us(path, row)) for row in rows]
    if "KernelName" in columns:
        return _wide(path, columns, rows)
    if set(BENCH) <= set(columns):
        return _timings(path, rows)
    raise ReportError(
        f"{path} is no table that is known: its columns are {', '.join(columns)[:200]}; allowed: "
        "counter_collection.csv or kernel_trace.csv of rocprofv3 (--output-format csv), the table of rocprof, one of "
        "kernelwright tile-engine bench"
    )


def _collected(path: Path, rows: Sequence[Mapping[str, str]]) -> list[Launch]:
    """Read rows of rocprofv3: the rows of a launch differ in the counter."""
    counters: dict[tuple[str, ...], dict[str, float]] = {}
    launches: dict[tuple[str, ...], Launch] = {}
    for number, row in enumerate(rows):
        key = tuple(row.get(name, "") for name in ("Process_Id", "Agent_Id", "Dispatch_Id"))
        name, value = row["Counter_Name"], _number(path, number, row, "Counter_Value")
        own = counters.setdefault(key, {})
        if name in own:
            raise ReportError(f"{path}: row {number}: {name} of launch {row['Dispatch_Id']} is there twice")
        own[name] = value
        launch = Launch(_function(row["Kernel_Name"]), _grid(row), _us(path, row), own)
        if launches.setdefault(key, launch).function != launch.function:
            raise ReportError(f"{path}: row {number}: launch {row['Dispatch_Id']} has two kernels")
    return list(launches.values())


def _wide(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[Launch]:
    counted = [name for name in columns if name not in _LAUNCH_V1]
    return [
        Launch(
            _function(row["KernelName"]),
            row.get("grd", ""),
            _us(path, row, "BeginNs", "EndNs"),
            {name: _number(path, number, row, name) for name in counted},
        )
        for number, row in enumerate(rows)
    ]


def _timings(path: Path, rows: Sequence[Mapping[str, str]]) -> list[Timing]:
    """Read timings; kernels that were not timed, such as those that failed, are left out."""
    timings = []
    for number, row in enumerate(rows):
        if row["status"] == "ok" and row["latency_ms"]:
            us = _number(path, number, row, "latency_ms") * 1e3
            tflops = _number(path, number, row, "tflops") if row["tflops"] else None
            timings.append(Timing(row["kernel"], row["identity"], us, tflops, row))
    return timings


def _function(name: str) -> str:
    """Return a device function's name without the suffixes of rocprof's versions."""
    return _CLONE.sub("", name.strip())


def _grid(row: Mapping[str, str]) -> str:
    sizes = [row[name] for name in ("Grid_Size", "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z") if name in row]
    return " x ".join(sizes)


def _us(path: Path, row: Mapping[str, str], begin: str = "Start_Timestamp", end: str = "End_Timestamp") -> float | None:
    if begin not in row or end not in row:
        return None
    try:
        return (int(row[end]) - int(row[begin])) / 1e3
    except ValueError:
        raise ReportError(f"{path}: {begin} {row[begin]!r:.40} or {end} {row[end]!r:.40} is no number") from None


def _number(path: Path, number: int, row: Mapping[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ReportError(f"{path}: row {number}: {column} is {row[column]!r:.40}; allowed: a number from 0")
    return value
