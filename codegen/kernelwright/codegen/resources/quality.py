"""``kernelwright quality``: what bounds each kernel of a library, from the counts in its manifest.

Kernels of AMD GPUs have counts of their main loop; those of other backends have what their reports tell (registers,
spills, occupancy). Exit code 0, or 2 for something that is no library, and for a pattern that no kernel has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kernelwright.codegen.resources import report
from kernelwright.codegen.resources.measured.join import add_measured
from kernelwright.codegen.resources.measured.show import measured_text
from kernelwright.codegen.resources.measured.tables import read_table
from kernelwright.codegen.resources.quality_columns import COLUMNS, cell
from kernelwright.codegen.resources.report import ReportError, manifests, read_object
from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError
from kernelwright.files.commands import ArgumentParser
from kernelwright.files.occupancy import limiter

_EXIT_BAD_INPUT = 2
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; the exit code."""
    parser = ArgumentParser("kernelwright quality", description="Show what bounds the kernels of libraries.")
    parser.add_argument("library", nargs="+", help="a manifest.json, a library beside one, or a folder of libraries")
    parser.add_argument("--kernel", action="append", metavar="PATTERN", help="only kernels of such a name or identity")
    parser.add_argument("--executed", action="append", default=[], metavar="FILE", help="counts of a simulated launch")
    parser.add_argument(
        "--measured",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="tables of rocprof or of tile-engine bench; libraries stand before",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--html", action="store_true", help="print one page")
    given = parser.parse_args(arguments)
    try:
        executed = [read_object(Path(path)) for path in given.executed]
        paths = [path for named in given.library for path in manifests(Path(named))]
        described = selected([describe(path) for path in paths], given.kernel)
        add_executed(described, executed)
        add_measured(described, [read_table(Path(path)) for path in given.measured])
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    if given.html:
        from kernelwright.codegen.resources.quality_page import page

        print(page(described))
    else:
        print(json.dumps(as_json(described), indent=1) if given.json else text(described))
    return 0


def describe(manifest: Path) -> dict[str, Any]:
    """The library of a manifest: ``name``, ``arch``, ``folder``, and a row for each of its ``kernels``.

    A row has ``name``, ``identity``, and a value for each of :data:`COLUMNS` (None where it is unknown or does not
    exist), ``counts``, as ``kernelwright.codegen.resources.amd.counts.read_counts`` describes them, and ``measured``,
    see :func:`kernelwright.codegen.resources.measured.join.add_measured`. ReportError for a file that is no manifest.
    """
    raw = read_object(manifest)
    described = report.describe(raw, None, str(manifest.parent))
    unit = _unit(described["arch"])
    resources = [kernel.get("resources") or {} for kernel in raw["kernels"]]
    rows = [_row(row, given, unit) for row, given in zip(described["kernels"], resources, strict=True)]
    return {**described, "kernels": rows}


def selected(libraries: Sequence[dict[str, Any]], patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """The kernels whose name or identity one of ``patterns`` has; ReportError if there is none."""
    if not patterns:
        return list(libraries)

    def fits(row: Row) -> bool:
        return any(fnmatchcase(row[key], pattern) for key in ("name", "identity") for pattern in patterns)

    kept = [{**one, "kernels": [row for row in one["kernels"] if fits(row)]} for one in libraries]
    if not any(one["kernels"] for one in kept):
        raise ReportError(f"no kernel is called {' or '.join(patterns)}; `kernelwright info` lists the names")
    return [one for one in kept if one["kernels"]]


def add_executed(libraries: Iterable[Mapping[str, Any]], launches: Iterable[Mapping[str, Any]]) -> None:
    """Give kernels the counts of simulated launches, as ``kernelwright.simulator.Counts.write`` has them.

    ReportError for a launch of a kernel that is not in the libraries.
    """
    rows = [row for library in libraries for row in library["kernels"]]
    for launch in launches:
        symbol = launch.get("symbol")
        own = [row for row in rows if isinstance(symbol, str) and row["identity"][:16] in symbol]
        if not own:
            raise ReportError(f"counts of {symbol!r} belong to no kernel of these libraries")
        lines, compulsory = launch.get("lines"), launch.get("unique_lines")
        if not isinstance(lines, int) or not isinstance(compulsory, int):
            raise ReportError(f"counts of {symbol!r} have no lines; kernelwright.simulator.Counts.write writes them")
        for row in own:
            row["executed"] = dict(launch)
            row["lines_per_compulsory"] = round(lines / compulsory, 2) if compulsory else None


def as_json(libraries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Libraries, and the counters of rocprof that columns compare with."""
    counters = {column.key: list(column.counters) for column in COLUMNS if column.counters}
    return {"counters": counters, "libraries": list(libraries)}


def text(libraries: Sequence[Mapping[str, Any]]) -> str:
    """A table for each library, and what was measured of its kernels; columns without a value are left out."""
    blocks = []
    for library in libraries:
        rows = library["kernels"]
        shown = [column for column in COLUMNS if any(row[column.key] is not None for row in rows)]
        table = [[*(column.heading for column in shown), "kernel"]]
        table += [[*(cell(row[column.key]) for column in shown), row["name"]] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        count = f"{len(rows)} kernel{'s' * (len(rows) != 1)}"
        lines = [f"{library['name']} for {library['arch']}: {count} ({library['folder']})"]
        for *cells, name in table:
            padded = (one.rjust(width) for one, width in zip(cells, widths[:-1], strict=True))
            lines.append("  ".join([*padded, name]))
        blocks += ["\n".join(lines), *filter(None, map(measured_text, rows))]
    return "\n\n".join(blocks)


def _row(row: Mapping[str, Any], resources: Mapping[str, Any], unit: Mapping[str, Any] | None) -> Row:
    counts = resources.get("counts") or {}
    loop, clocks, outside = counts.get("loop"), counts.get("clocks") or {}, counts.get("outside") or {}
    fits = unit is not None and "block_size" in resources
    columns: Row = {
        "bound": counts.get("bound"),
        **{f"{name}_clocks": clocks.get(name) for name in ("matrix", "vector", "lds", "memory")},
        **{key: counts.get(key) for key in ("valu_per_matrix_cycle", "lds_per_matrix_cycle")},
        "conflicts": loop["conflict_cycles"] if loop else None,
        "vector": loop["vector"] if loop else None,
        "scalar": loop["scalar"] if loop else None,
        "lds": sum(loop["lds"].values()) if loop else None,
        "memory": sum(loop["memory"].values()) if loop else None,
        "load_bytes": _narrowest_load(loop["memory"]) if loop else None,
        "waits": loop["waits"] if loop else None,
        "barriers": loop["barriers"] if loop else None,
        "outside": outside.get("instructions"),
        **{key: row[key] for key in ("registers", "lds_bytes", "spills", "scratch_bytes", "occupancy_percent")},
        "limiter": limiter({"wave_size": 32, **resources}, unit) if fits and unit else None,
        "matrix_instructions": row["matrix_instructions"],
        **dict.fromkeys(("lines_per_compulsory", "measured_us", "bound_share_percent")),
    }
    return {"name": row["name"], "identity": row["identity"], **columns, "counts": counts or None, "measured": None}


def _narrowest_load(memory: Mapping[str, int]) -> int | None:
    """Bytes per lane of the narrowest load, to registers or to LDS."""
    widths = [int(name.rpartition(" ")[2]) for name in memory if name.startswith("load ")]
    return min(widths, default=None)


def _unit(arch: str) -> Any:
    """What a compute unit holds; None for an architecture of the user whose file is not at hand."""
    try:
        return arch_files.read(arch)[0].get("compute_unit") if arch in arch_files.names() else None
    except ArchFileError as error:
        raise ReportError(str(error)) from None
