"""Whether 10,000 kernel targets feel like 100: listing, peeking, building nothing, building one change.

Makes throw-away copies of the repository with generated BUILD files and a compiler that costs nothing, so that what is
left is Pants and the plugin. ``PYTHONPATH=tests python benchmarks/build/scale.py > benchmarks/results/scale.json``
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from e2e.workspace import Run
from faults.builds import CheapBuilds

_KERNEL = (
    'gemm_kernel(name="k{k}", arch="x86_64_v3", dtype="fp32", layout="rrr", tile=[{m}, {n}, {k_block}], '
    "warp_tile=[6, 16, 1])\n"
)
_SET = """kernel_set(name="set", archs=["x86_64_v3"], config="kernels.json")
kernel_library(name="lib{library}", dependencies=[":set"])
"""


def by_calls(kernels: int, per_library: int) -> dict[str, str]:
    """BUILD files with a ``gemm_kernel`` for each kernel, ``per_library`` of them in each folder's library."""
    files = {}
    for library in range(kernels // per_library):
        lines = []
        for k in range(per_library):
            n = library * per_library + k
            lines.append(_KERNEL.format(k=k, m=6 * (n % 100 + 1), n=16 * (n // 100 + 1), k_block=64))
        names = ", ".join(f'":k{k}"' for k in range(per_library))
        files[f"s/l{library}/BUILD"] = "".join(lines) + f'kernel_library(name="lib{library}", dependencies=[{names}])\n'
    return files


def by_sets(kernels: int, per_library: int) -> dict[str, str]:
    """The same kernels, from a ``kernel_set`` with a configuration in each folder."""
    files = {}
    for library in range(kernels // per_library):
        tile = {
            "tile_m": {"values": [6 * (k + 1) for k in range(per_library)]},
            "tile_n": {"values": [16 * (library + 1)]},
            "tile_k": {"values": [64]},
            "warp_tile_m": {"values": [6]},
            "warp_tile_n": {"values": [16]},
            "warp_tile_k": {"values": [1]},
        }
        config = {"op": "gemm", "problem": {"dtype": "fp32", "layout": "rrr"}, "tile_config": tile}
        files[f"s/l{library}/BUILD"] = _SET.format(library=library)
        files[f"s/l{library}/kernels.json"] = json.dumps(config)
    return files


def spread(runs: list[Run]) -> dict[str, Any]:
    """Median, minimum and maximum."""
    cpu, wall = sorted(run.cpu_s for run in runs), sorted(run.wall_s for run in runs)
    return {
        "runs": len(runs),
        "cpu_s": {"median": round(statistics.median(cpu), 2), "min": round(cpu[0], 2), "max": round(cpu[-1], 2)},
        "wall_s": {"median": round(statistics.median(wall), 2), "min": round(wall[0], 2), "max": round(wall[-1], 2)},
    }


class Site:
    """A workspace with this many kernels."""

    def __init__(self, folder: Path, kernels: int, per_library: int, declared: str) -> None:
        self.build = CheapBuilds(folder, 0)
        self.declared = declared
        self.files = {"calls": by_calls, "sets": by_sets}[declared](kernels, per_library)
        self.kernels = kernels
        self.per_library = per_library
        for path, text in self.files.items():
            self.build.workspace.write(path, text)

    def pants(self, *arguments: str) -> Run:
        """One call that must succeed."""
        run = self.build.workspace.pants(*self.build.options, *arguments, timeout=4 * 3600)
        if "while waiting for pantsd to start" in run.stderr:  # on a busy machine its 60 s are not enough
            run = self.build.workspace.pants(*self.build.options, *arguments, timeout=4 * 3600)
        if run.exit_code:
            raise SystemExit(run.stderr[-4000:])
        return run

    def change(self, number: int) -> None:
        """Change the tile of one kernel, never to the same one twice."""
        if self.declared == "calls":
            path, old, new = "s/l0/BUILD", ", 64]", f", {65 + number}]"
        else:
            path, old, new = "s/l0/kernels.json", "[6,", f"[{6 * (101 + number)},"
        self.build.workspace.write(path, self.files[path].replace(old, new, 1))


def measure(sites: list[Site], package: str, repeats: int) -> list[dict[str, Any]]:
    """All figures for each site; sites take turns, so that other work on the machine slows all of them."""
    calls = ["list", "s::"], ["peek", "s::"], ["list", "s/l0:lib0"], ["peek", "s/l0:lib0"], ["package", package]
    first = [{" ".join(call): site.pants(*call) for call in calls} for site in sites]
    again: list[dict[str, list[Run]]] = [{" ".join(call): [] for call in calls} for _ in sites]
    changed: list[list[Run]] = [[] for _ in sites]
    for _ in range(repeats):
        for call in calls:
            for site, runs in zip(sites, again, strict=True):
                runs[" ".join(call)].append(site.pants(*call))
    memory = [site.build.workspace.daemon_memory_mb() for site in sites]
    for number in range(repeats):
        for site, runs in zip(sites, changed, strict=True):
            site.change(number)
            runs.append(site.pants("package", package))
    rows = []
    for n, site in enumerate(sites):
        figures = {
            "kernels": site.kernels,
            "declared": site.declared,
            "kernels_per_library": site.per_library,
            "packaged": package,
            "first": {call: spread([run]) for call, run in first[n].items()},
            "again": {call: spread(runs) for call, runs in again[n].items()},
            "one_kernel_changed": spread(changed[n]),
            "daemon_mb": memory[n],
            "daemon_mb_after_changes": site.build.workspace.daemon_memory_mb(),
        }
        rows.append(figures)
    return rows


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, nargs="+", default=[100, 10000])
    parser.add_argument("--per-library", type=int, default=100)
    parser.add_argument("--package", default="s/l0:", help="what is built; s:: for all libraries")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--declared", choices=["sets", "calls"], default="sets", help="kernel_set or gemm_kernel targets"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sites = [
            Site(Path(folder) / str(kernels), kernels, arguments.per_library, arguments.declared)
            for kernels in arguments.kernels
        ]
        try:
            measurements = measure(sites, arguments.package, arguments.repeats)
        finally:
            for site in sites:
                site.build.close()
    print(json.dumps({"machine": describe(), "measured": measurements}, indent=1))


if __name__ == "__main__":
    main()
