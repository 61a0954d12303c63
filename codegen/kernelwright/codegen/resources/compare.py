"""``kernelwright compare``: what a change did to the kernels of a library, for reviews and CI.

Kernels are paired by architecture and identity. Exit code 0; 1 if ``--fail-on-worse`` is given and a number became
worse or a kernel is missing; 2 for something that is no library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.resources.quality import describe
from kernelwright.codegen.resources.quality_columns import COLUMNS, cell
from kernelwright.codegen.resources.report import ReportError, manifests
from kernelwright.files.commands import ArgumentParser

_EXIT_FAILED, _EXIT_BAD_INPUT = 1, 2
Kernels = Mapping[tuple[str, str], Mapping[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences; the exit code."""
    parser = ArgumentParser("kernelwright compare", description="Compare the kernels of two builds.")
    parser.add_argument("old", help="a manifest.json, a library beside one, or a folder of libraries")
    parser.add_argument("new", help="the same of the build after the change")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--fail-on-worse", action="store_true", help="exit with 1 if a number became worse")
    given = parser.parse_args(arguments)
    try:
        old, new = _kernels(Path(given.old)), _kernels(Path(given.new))
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    comparison = compared(old, new)
    print(json.dumps(comparison, indent=1) if given.json else text(comparison))
    worse = comparison["removed"] or any(change["worse"] for one in comparison["changed"] for change in one["changes"])
    return _EXIT_FAILED if given.fail_on_worse and worse else 0


def compared(old: Kernels, new: Kernels) -> dict[str, Any]:
    """``added`` and ``removed`` kernels (``arch``, ``name``), how many are the ``same``, and those ``changed``.

    A changed kernel has ``changes``: ``key``, ``old``, ``new``, and whether the new value is ``worse`` (None where
    neither direction is, or a value is missing).
    """
    both = [key for key in old if key in new]
    changed = [
        {"arch": arch, "name": new[arch, identity]["name"], "changes": changes}
        for arch, identity in both
        if (changes := list(_changes(old[arch, identity], new[arch, identity])))
    ]
    return {
        "added": [_named(key, new[key]) for key in new if key not in old],
        "removed": [_named(key, old[key]) for key in old if key not in new],
        "same": len(both) - len(changed),
        "changed": changed,
    }


def text(comparison: Mapping[str, Any]) -> str:
    """Lines: what changed of each kernel, then what was added and removed, then how many are the same."""
    headings = {column.key: column.heading for column in COLUMNS}
    lines = []
    for one in comparison["changed"]:
        lines.append(f"{one['arch']} {one['name']}")
        for change in one["changes"]:
            mark = {True: "  worse", False: "  better", None: ""}[change["worse"]]
            lines.append(f"  {headings[change['key']]}: {cell(change['old'])} → {cell(change['new'])}{mark}")
    for word in ("added", "removed"):
        lines += [f"{word}: {one['arch']} {one['name']}" for one in comparison[word]]
    count = comparison["same"]
    return "\n".join([*lines, f"{count} kernel{'s' * (count != 1)} with the same numbers"])


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for column in COLUMNS:
        before, after = old[column.key], new[column.key]
        if before != after:
            numbers = isinstance(before, int | float) and isinstance(after, int | float) and column.better is not None
            worse = (after > before) == (column.better == "lower") if numbers else None
            yield {"key": column.key, "old": before, "new": after, "worse": worse}


def _kernels(path: Path) -> Kernels:
    libraries = [describe(manifest) for manifest in manifests(path)]
    return {(one["arch"], row["identity"]): row for one in libraries for row in one["kernels"]}


def _named(key: tuple[str, str], row: Mapping[str, Any]) -> dict[str, str]:
    return {"arch": key[0], "name": row["name"]}
