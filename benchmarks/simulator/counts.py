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

from kernelwright.codegen.resources.quality import describe
from kernelwright.codegen.resources.report import manifests
from kernelwright.files import arch_files
from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.files.counts.mix import Mix
from kernelwright.files.counts.turn import bound, clocks
from kernelwright.simulator.code.object_file import images
from kernelwright.simulator.counting.static import KernelCounts, count_image
from kernelwright.simulator.errors import SimulatorError

RESULTS = Path(__file__).parents[1] / "results" / "amd_counts.json"


def numbers(arch: str, registers: int, loop: Mix) -> dict[str, Any]:
    """Figures of a main loop on the page: bounds without bank conflicts, and without memory."""
    facts = arch_files.read(arch)[0]
    taken = clocks(loop, instruction_set(facts["amdgpu"]["instructions"]), facts["compute_unit"]["simds"]) or {}
    taken = {name: taken.get(name) for name in ("matrix", "vector", "lds")}
    shown = {f"{name}_clocks": value for name, value in taken.items()}
    limit = bound(taken if taken["matrix"] is not None else None)
    return {**shown, "vector": loop.vector, "registers": registers, "bound": limit}


def counted(folder: Path) -> dict[str, KernelCounts]:
    """Symbol → counts, for every code object below a folder."""
    by_symbol: dict[str, KernelCounts] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            objects = images(path.read_bytes())
        except SimulatorError:
            continue
        for image in objects:
            try:
                by_symbol.update({one.symbol: one for one in count_image(image) if one.loop is not None})
            except SimulatorError:  # relocatable: not linked yet
                continue
    return by_symbol


def rows(after: Path, before: dict[str, KernelCounts]) -> Iterator[dict[str, Any]]:
    """A row for each kernel with a main loop of matrix instructions."""
    now = counted(after)
    for manifest in manifests(after):
        library = describe(manifest)
        for row in library["kernels"]:
            own = [symbol for symbol in now if row["identity"][:16] in symbol]
            if own:
                symbol = max(own, key=lambda one: now[one].loop.matrix if now[one].loop else 0)
                shown = [_shown(library["arch"], counts.get(symbol)) for counts in (before, now)]
                yield {"arch": library["arch"], "name": row["name"], "before": shown[0], "after": shown[1]}


def _shown(arch: str, kernel: KernelCounts | None) -> dict[str, Any] | None:
    return numbers(arch, kernel.registers, kernel.loop) if kernel and kernel.loop else None


def main() -> None:
    """Count, and write results and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("after", type=Path)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    loop_rows = sorted(rows(given.after, counted(given.before)), key=lambda row: (len(row["arch"]), row["arch"]))
    head = {"about": "main loops of shipped AMD kernels, per wave and turn, before and after the range check of loads"}
    RESULTS.write_text(results_file.text(head, loop_rows))
    if given.write:
        given.write.write_text(figures.written(given.write.read_text(), {**head, "results": loop_rows}, figures.COUNTS))


if __name__ == "__main__":
    main()
