"""What a build of many kernels costs: cold, nothing changed, one spec changed, listing.

Makes a throw-away copy of the repository with a ``kernel_set`` of CPU kernels and prints JSON. Example:
``python benchmarks/build/thousand.py --kernels 1000 > benchmarks/results/build_1000.json``
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe
from scale import spread

from e2e.workspace import Run, Workspace

BUILD = """
kernel_set(name="set", archs=["x86_64_v3"], config="config.json")
gemm_kernel(name="one", arch="x86_64_v3", dtype="fp32", layout="ccr", tile=[48, {tile_n}, 256], warp_tile=[6, 16, 1])
kernel_library(name="many", dependencies=[":set", ":one"])
"""


def config(count: int) -> dict[str, Any]:
    """``count`` fp32 kernels that differ in their cache blocks."""
    assert count % 40 == 0, "the number of kernels must be a multiple of 40"
    return {
        "op": "gemm",
        "tile_config": {
            "tile_m": {"values": [24 * (i + 1) for i in range(count // 40)]},
            "tile_n": {"values": [64 * (i + 1) for i in range(10)]},
            "tile_k": {"values": [64, 128, 192, 256]},
            "warp_tile": {"values": [[6, 16, 1]]},
        },
        "trait_config": {"dtype": {"values": ["fp32"]}, "layout": {"values": ["rrr"]}},
    }


def summary(run: Run) -> dict[str, Any]:
    """The figures of one run; lines with kernel names are merged."""
    kinds = Counter(" ".join(description.split()[:1]) for description in run.ran)
    return {
        "wall_s": round(run.wall_s, 2),
        "cpu_s": round(run.cpu_s, 2),
        "exit_code": run.exit_code,
        "processes": len(run.ran),
        "processes_by_kind": dict(kinds),
        "ran": list(run.ran) if len(run.ran) <= 12 else f"{len(run.ran)} processes",
    }


def median_of(runs: list[Run]) -> dict[str, Any]:
    """Median, minimum and maximum of repeated runs."""
    return {**spread(runs), "processes": runs[-1].ran}


def measure(count: int, folder: Path) -> dict[str, Any]:
    """All figures for a set of ``count`` kernels."""
    workspace = Workspace(folder)
    try:
        workspace.write("many/BUILD", BUILD.format(tile_n=64))
        workspace.write("many/config.json", json.dumps(config(count)))
        first_list = workspace.pants("list", "many::")
        warm_list = [workspace.pants("list", "many::") for _ in range(5)]
        cold = workspace.pants("package", "many:many", timeout=4 * 3600)
        if cold.exit_code:
            raise SystemExit(cold.stderr[-4000:])
        no_op = [workspace.pants("package", "many:many") for _ in range(5)]
        workspace.write("many/BUILD", BUILD.format(tile_n=128))
        one_changed = workspace.pants("package", "many:many")
        return {
            "kernels": count,
            "list_first": summary(first_list),
            "list_warm": median_of(warm_list),
            "cold": summary(cold),
            "no_op": median_of(no_op),
            "one_spec_changed": summary(one_changed),
        }
    finally:
        workspace.close()


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"machine": describe(), **measure(arguments.kernels, Path(folder))}, indent=1))


if __name__ == "__main__":
    main()
