"""Counts of the main loops of AMD libraries before and after a change, by :mod:`kernelwright.simulator.counting`.

``python benchmarks/simulator/counts.py AFTER --before FOLDER --write docs/counts.md``: AFTER holds libraries with their
manifests; FOLDER any files with code objects of the same kernels. Writes benchmarks/results/amd_counts.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import results_file
from simulator import figures

from kernelwright.files import arch_files
from kernelwright.simulator.code.object_file import images
from kernelwright.simulator.counting.static import KernelCounts, count_image
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.tools.quality import clocks, describe

RESULTS = Path(__file__).parents[1] / "results" / "amd_counts.json"


def numbers(registers: int, loop: dict[str, Any], taken: dict[str, int] | None, bound: str | None) -> dict[str, Any]:
    """What the page shows of a main loop."""
    of = taken or {}
    shown = {f"{name}_clocks": of.get(name) for name in ("matrix", "vector", "lds")}
    return {**shown, "vector": loop["vector"], "registers": registers, "bound": bound}


def counted(folder: Path) -> dict[str, KernelCounts]:
    """Symbol → counts, of every code object below a folder."""
    found: dict[str, KernelCounts] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            objects = images(path.read_bytes())
        except SimulatorError:
            continue
        for image in objects:
            try:
                found.update({one.symbol: one for one in count_image(image) if one.loop is not None})
            except SimulatorError:  # relocatable: not linked yet
                continue
    return found


def rows(after: Path, before: dict[str, KernelCounts]) -> Iterator[dict[str, Any]]:
    """A row for each kernel that has a main loop of matrix instructions."""
    for manifest in sorted(after.rglob("manifest.json")):
        library = describe(manifest)
        simds = arch_files.read(library["arch"])[0]["compute_unit"]["simds"]
        for row in library["kernels"]:
            if row["loop"] is None:
                continue
            old, shown = before.get(row["symbol"]), None
            if old is not None and old.loop is not None:
                taken = clocks(old.loop, simds)
                bound = max(taken, key=lambda name: taken[name]) if taken else None
                shown = numbers(old.registers, {"vector": old.loop.vector}, taken, bound)
            now = numbers(row["registers"], row["loop"], row["clocks"], row["bound"])
            yield {"arch": library["arch"], "name": row["name"], "before": shown, "after": now}


def main() -> None:
    """Count, and write results and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("after", type=Path)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    found = sorted(rows(given.after, counted(given.before)), key=lambda row: (len(row["arch"]), row["arch"]))
    head = {"about": "main loops of shipped AMD kernels, per wave and turn, before and after the range check of loads"}
    RESULTS.write_text(results_file.text(head, found))
    if given.write:
        given.write.write_text(figures.written(given.write.read_text(), {**head, "results": found}))


if __name__ == "__main__":
    main()
