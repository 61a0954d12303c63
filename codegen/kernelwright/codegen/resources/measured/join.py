"""Rows of ``kernelwright quality`` with the measurements of their kernels."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from kernelwright.codegen.resources.measured.counted import counted, turns
from kernelwright.codegen.resources.measured.tables import Launch, Timing
from kernelwright.codegen.resources.report import ReportError
from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError

_SYMBOL = re.compile(r"kw_kernel_([0-9a-f]{16})")
_NAMED = 5  # most functions named in a message


def add_measured(libraries: Sequence[Mapping[str, Any]], tables: Iterable[Sequence[Launch] | Sequence[Timing]]) -> None:
    """Give kernels ``measured``, ``measured_us`` and ``bound_share_percent``.

    ``measured`` holds ``launches`` of the counted function, ``us`` of one (the median), ``waves``, ``turns`` (the
    iterations of all its waves), ``counters`` by name with ``counted`` and ``measured`` numbers per wave and iteration
    and ``launch``, the mean of a launch; ``helpers``, launches of other functions of the kernel; and ``problems`` that
    the tile engine timed. ReportError names functions and kernels that are in none of the libraries.
    """
    kernels = [(library["arch"], row) for library in libraries for row in library["kernels"]]
    launches: list[Launch] = []
    timings: list[Timing] = []
    for table in tables:
        for one in table:
            (launches if isinstance(one, Launch) else timings).append(one)  # type: ignore[arg-type]
    by_symbol = {row["identity"][:16]: row["identity"] for _, row in kernels}
    of_launches, of_timings = defaultdict(list), defaultdict(list)
    unknown: Counter[str] = Counter()
    for launch in launches:
        match = _SYMBOL.search(launch.function)
        identity = by_symbol.get(match.group(1)) if match else None
        if identity is None:
            unknown[launch.function] += 1
        else:
            of_launches[identity].append(launch)
    for timing in timings:
        if timing.identity in by_symbol.values():
            of_timings[timing.identity].append(timing)
        else:
            unknown[timing.kernel] += 1
    if unknown:
        raise ReportError(_unknown(unknown))
    for arch, row in kernels:
        own, timed = of_launches[row["identity"]], of_timings[row["identity"]]
        if own or timed:
            _add(row, _device(arch), own, timed)


def _unknown(unknown: Mapping[str, int]) -> str:
    names = [f"{name!r} ({count} rows)" for name, count in list(unknown.items())[:_NAMED]]
    more = f" and {len(unknown) - _NAMED} others" if len(unknown) > _NAMED else ""
    return (
        f"measured rows belong to no kernel of these libraries: {', '.join(names)}{more}; name the libraries that ran, "
        "and let rocprofv3 see their functions alone: --kernel-include-regex kw_kernel_"
    )


def _add(row: dict[str, Any], device: Mapping[str, Any] | None, own: Sequence[Launch], timed: Sequence[Timing]) -> None:
    counts = row["counts"] or {}
    function = counts.get("function")
    main = [one for one in own if function in (None, one.function)]
    helpers = Counter(one.function for one in own if function not in (None, one.function))
    loop, clocks, bound = counts.get("loop"), counts.get("clocks"), row["bound"]
    slower = clocks[bound] / clocks["matrix"] if clocks and bound and clocks["matrix"] else None
    means = _means(row["name"], main)
    us = median([one.us for one in main if one.us is not None] or [0.0]) or None
    all_turns = turns(loop, means)
    problems = [_problem(one, device, slower) for one in timed]
    shares = [one["bound_share_percent"] for one in problems if one["bound_share_percent"] is not None]
    counter_share = _counter_share(means, us, device, slower)
    row["measured"] = {
        "launches": len(main),
        "us": us,
        "waves": means.get("SQ_WAVES"),
        "turns": all_turns,
        "counters": {
            name: {
                "counted": counted(loop).get(name),
                "measured": round(value / all_turns, 3) if all_turns else None,
                "launch": value,
            }
            for name, value in means.items()
        },
        "helpers": dict(helpers),
        "problems": problems,
    }
    row["measured_us"] = us if us is not None else min((one["us"] for one in problems), default=None)
    row["bound_share_percent"] = max(shares) if shares else counter_share


def _means(kernel: str, launches: Sequence[Launch]) -> dict[str, float]:
    """Return each counter's mean over launches; refuses passes whose grids were not launched equally often."""
    values: dict[str, list[float]] = defaultdict(list)
    grids: dict[str, Counter[str]] = defaultdict(Counter)
    for launch in launches:
        for name, value in launch.counters.items():
            values[name].append(value)
            grids[name][launch.grid] += 1
    shares = {
        name: {grid: Fraction(count, group.total()) for grid, count in group.items()} for name, group in grids.items()
    }
    for name in shares:
        first = next(iter(shares))
        if shares[name] != shares[first]:
            raise ReportError(
                f"{kernel}: {first} was counted in launches of the grids {_listed(grids[first])}, and {name} in those "
                f"of {_listed(grids[name])}; name tables of one program that ran alike for each set of counters"
            )
    return {name: sum(group) / len(group) for name, group in values.items()}


def _listed(grids: Mapping[str, int]) -> str:
    return ", ".join(f"{grid or 'unknown'} ({count} times)" for grid, count in list(grids.items())[:_NAMED])


def _problem(timing: Timing, device: Mapping[str, Any] | None, slower: float | None) -> dict[str, Any]:
    rate = _peak_tflops(device, timing.cells)
    share = None if not (rate and slower and timing.tflops) else round(100 * timing.tflops * slower / rate, 1)
    shown = ("problem_idx", "model", "layer", "m", "n", "k", "dtype", "layout", "device", "roofline")
    problem = {key: timing.cells[key] for key in shown if timing.cells.get(key)}
    return {**problem, "us": round(timing.us, 3), "tflops": timing.tflops, "bound_share_percent": share}


def _peak_tflops(device: Mapping[str, Any] | None, cells: Mapping[str, str]) -> float | None:
    """Return the peak TFLOP/s of the units that a launch may use, at the stated clock."""
    rate = device["flops_per_clock_per_cu"].get(cells.get("dtype")) if device else None
    units = cells.get("units") or (device["compute_units"] if device else 0)
    return float(rate) * int(units) * float(device["clock_ghz"]) / 1e3 if device and rate and units else None


def _counter_share(
    means: Mapping[str, float], us: float | None, device: Mapping[str, Any] | None, slower: float | None
) -> float | None:
    """Return the clocks of the bounding unit as a percentage of all SIMDs' clocks in that time, at the stated clock."""
    busy = means.get("SQ_VALU_MFMA_BUSY_CYCLES")
    if not (busy and us and slower and device and device["compute_units"] and device.get("compute_unit")):
        return None
    simds = device["compute_units"] * device["compute_unit"]["simds"]
    return round(100 * busy * slower / (us * 1e3 * float(device["clock_ghz"]) * int(simds)), 1)


def _device(arch: str) -> Any:
    """Return the architecture's file; None for an architecture of the user whose file is not at hand."""
    try:
        return arch_files.read(arch)[0] if arch in arch_files.names() else None
    except ArchFileError as error:
        raise ReportError(str(error)) from None
