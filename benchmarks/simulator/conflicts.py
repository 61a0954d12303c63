"""What bounds main loops of AMD kernels, LDS bank conflicts among it, as ``kernelwright quality`` reports it.

``python benchmarks/simulator/conflicts.py SHIPPED FOLDER… --write docs/counts.md``: folders of libraries with their
manifests, first the shipped ones; a kernel that stands in several is read once. Writes
benchmarks/results/amd_conflicts.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import results_file
from simulator import figures

from kernelwright.codegen.resources.quality import describe
from kernelwright.codegen.resources.report import manifests

RESULTS = Path(__file__).parents[1] / "results" / "amd_conflicts.json"
KEYS = ("matrix_clocks", "vector_clocks", "lds_clocks", "memory_clocks", "conflicts", "bound")


def rows(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """A row for each kernel with a main loop, by architecture and name."""
    by_kernel: dict[tuple[str, str], dict[str, Any]] = {}
    listed = [(at == 0, one) for at, folder in enumerate(folders) for one in manifests(folder)]
    for shipped, manifest in listed:
        library = describe(manifest)
        for row in library["kernels"]:
            if row["bound"]:
                assumed = row["counts"]["loop"]["conflicts_assumed"]
                kept = {"arch": library["arch"], "name": row["name"], "identity": row["identity"]}
                numbers = {key: row[key] for key in KEYS}
                stated = {**kept, **numbers, "assumed": assumed, "shipped": shipped}
                by_kernel.setdefault((library["arch"], row["identity"]), stated)
    return sorted(by_kernel.values(), key=lambda row: (len(row["arch"]), row["arch"], row["name"]))


def main() -> None:
    """Read, and write results and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    report = {"about": "main loops of AMD kernels, per wave and turn", "results": rows(given.folder)}
    RESULTS.write_text(results_file.text({"about": report["about"]}, report["results"]))
    if given.write:
        given.write.write_text(figures.written(given.write.read_text(), report, figures.CONFLICTS))


if __name__ == "__main__":
    main()
