"""``kernelwright info``: the resources of libraries' kernels, as text or JSON; needs no third-party package.

Reads ``manifest.json`` and, where a library was built by ``kernelwright build`` or at run time, ``costs.json`` beside
it. Exit code 0, or 2 for something that is not a library.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.files.commands import ArgumentParser
from kernelwright.files.strict_json import read_json
from kernelwright.problems.short_names import short_name

COSTS = "costs.json"
"""File beside a manifest with the compile cost of each kernel; separate, since it differs from build to build."""

_EXIT_BAD_INPUT = 2

# Key of a row → its names in the backends' reports; several are added up.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "registers": ("vgpr", "registers"),
    "agpr": ("agpr",),
    "sgpr": ("sgpr",),
    "lds_bytes": ("lds_bytes", "shared_bytes"),
    "spills": ("vgpr_spills", "sgpr_spills", "spill_instructions"),
    "scratch_bytes": ("scratch_bytes", "stack_bytes"),
    "workgroups_per_cu": ("workgroups_per_cu",),
    "occupancy_percent": ("occupancy_percent",),
    "matrix_instructions": ("matrix_instructions",),
    "code_bytes": ("code_bytes",),
}
_HEADINGS = {
    **{"registers": "regs", "agpr": "agpr", "sgpr": "sgpr", "lds_bytes": "LDS B", "spills": "spills"},
    **{"scratch_bytes": "scratch B", "workgroups_per_cu": "wg/CU", "occupancy_percent": "occ. %"},
    **{"matrix_instructions": "matrix", "code_bytes": "code B", "compile_s": "compile s", "name": "kernel"},
}


class ReportError(ValueError):
    """Something to be described that is not a library."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; the exit code."""
    parser = ArgumentParser("kernelwright info", description="Show what the kernels of libraries use.")
    parser.add_argument("library", nargs="+", help="a manifest.json, a library beside one, or a folder of libraries")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        described = [library for path in given.library for library in describe_path(Path(path))]
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    print(json.dumps({"libraries": described}, indent=1) if given.json else text(described))
    return 0


def describe_path(path: Path) -> list[dict[str, Any]]:
    """Return the libraries that a path names: itself, or every one below a folder. ReportError if there is none."""
    return [describe(read_object(one), _costs(one.with_name(COSTS)), str(one.parent)) for one in manifests(path)]


def manifests(path: Path) -> list[Path]:
    """Return the manifest that a path names, or every one below a folder. ReportError if there is none."""
    if path.is_dir():
        paths = sorted(path.rglob("manifest.json"))
    else:
        paths = [path.with_name("manifest.json") if path.suffix == ".so" else path]
        if not paths[0].exists():
            raise ReportError(
                f"{path}: {paths[0]} is not there; name a folder with manifest.json, that file or its .so"
            )
    if not paths:
        raise ReportError(f"{path} holds no manifest.json; name the folder of a library")
    return paths


def describe(
    manifest: Mapping[str, Any], costs: Mapping[str, Any] | None = None, folder: str | None = None
) -> dict[str, Any]:
    """Return one library: ``name``, ``arch``, ``folder`` and one row for each of its ``kernels``.

    A row has ``name``, ``short`` (a description that kernels may share), ``identity`` and, None where unknown or
    absent: ``registers`` of a lane (on AMD ``agpr`` of them for accumulators; on CPU the vector registers of
    multiply-adds), ``sgpr``, ``lds_bytes`` of a workgroup, ``spills``, ``scratch_bytes`` of a lane,
    ``workgroups_per_cu``, ``occupancy_percent``, ``matrix_instructions`` and ``code_bytes`` in the static code,
    ``compile_s`` (processor seconds). ReportError for data that is not a manifest.
    """
    where = folder or "the manifest"
    kernels = _field(manifest, "kernels", list, where)
    taken = _field(costs, "kernels", dict, f"{where}: {COSTS}") if costs else {}
    rows = [_row(kernel, taken, f"{where}: kernel {index}") for index, kernel in enumerate(kernels)]
    name, arch = _field(manifest, "name", str, where), _field(manifest, "arch", str, where)
    return {"name": name, "arch": arch, "folder": folder, "kernels": rows}


def respond_report(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Respond to a request of stage ``report`` (see :mod:`kernelwright.codegen.interface.protocol`)."""
    if not {"stage", "manifests"} <= set(raw) <= {"stage", "manifests", "costs"}:
        raise ReportError("a request of stage 'report' has the keys manifests and, optionally, costs")
    manifests, costs = _field(raw, "manifests", dict, "request"), _optional(raw, "costs", dict, "request") or {}
    libraries = [
        describe(
            _field(manifests, name, dict, "manifests"),
            _field(costs, name, dict, "costs") if name in costs else None,
            name,
        )
        for name in sorted(manifests)
    ]
    return {"text": text(libraries), "libraries": libraries}


def text(libraries: Sequence[Mapping[str, Any]]) -> str:
    """Return a table for each library; columns without a number are left out."""
    blocks = []
    for library in libraries:
        rows = library["kernels"]
        keys = [*_NUMBERS, "compile_s"]
        shown = [key for key in keys if any(row[key] is not None for row in rows)]
        table = [[_HEADINGS[key] for key in shown]] + [[_cell(row[key]) for key in shown] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        shared = Counter(row["short"] for row in rows)
        names = [_HEADINGS["name"]]
        names += [row["short"] + (f" {row['identity'][:8]}" if shared[row["short"]] > 1 else "") for row in rows]
        count = f"{len(rows)} kernel{'s' * (len(rows) != 1)}"
        where = f" ({library['folder']})" if library["folder"] else ""
        lines = [f"{library['name']} for {library['arch']}: {count}{where}"]
        for cells, name in zip(table, names, strict=True):
            lines.append("  ".join([*(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), name]))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _row(kernel: object, taken: Mapping[str, Any], where: str) -> dict[str, Any]:
    name, identity = _field(kernel, "name", str, where), _field(kernel, "identity", str, where)
    resources = _optional(kernel, "resources", dict, where) or {}
    short = short_name(_optional(kernel, "spec", dict, where) or {}, name)
    row: dict[str, Any] = {"name": name, "short": short, "identity": identity}
    for key, names in _NUMBERS.items():
        stated = (_optional(resources, one, int | float, where) for one in names)
        values = [value for value in stated if value is not None]
        row[key] = sum(values) if values else None
    cost = _field(taken[name], "cpu_s", int | float, f"{where}: {COSTS}") if name in taken else None
    return {**row, "compile_s": cost}


def _field(holder: object, key: str, kind: Any, where: str) -> Any:
    """Return a member of an object; ReportError if there is none of this type."""
    if not isinstance(holder, Mapping) or key not in holder:
        raise ReportError(f"{where} is no manifest of a library: {key!r} is missing; name a folder with manifest.json")
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, kind):
        expected = getattr(kind, "__name__", "number")
        raise ReportError(f"{where} is no manifest of a library: {key!r} is {value!r:.80}; allowed: a JSON {expected}")
    return value


def _optional(holder: Any, key: str, kind: Any, where: str) -> Any:
    return None if isinstance(holder, Mapping) and holder.get(key) is None else _field(holder, key, kind, where)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def read_object(path: Path) -> Mapping[str, Any]:
    """Read the JSON object of a manifest. ReportError for a file that cannot be read, or holds something else."""
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}; name a folder with manifest.json, or that file") from None
    if not isinstance(document, dict):
        raise ReportError(f"{path} is no manifest of a library")
    return document


def _costs(path: Path) -> Mapping[str, Any] | None:
    return read_object(path) if path.is_file() else None
