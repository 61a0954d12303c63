"""The fewest convolution kernels that are as fast as all of a sweep: convolution:release and :essential come from it.

``python benchmarks/selection/conv_release.py SWEEP.json`` reads what benchmarks/gpu/conv_sweep.py took on the tuned
networks. For each direction and number of implicit-GEMM tiles it prints the tiles with the best geometric mean of
(time of the fastest kernel ÷ time of the fastest of these), slices of backward weight chosen freely, and the worst
ratio; depthwise kernels are always there. convolution:release has the first row of each
direction that reaches ``--reach``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ratios import geometric_mean

DEPTHWISE = "depthwise"
_TILE = re.compile(r"_(\d+x\d+)x\d+_\dx1x1_")


def by_tile(us: Mapping[str, float]) -> dict[str, float]:
    """The fastest time of each tile; keys of ``us`` are kernel names, followed by a colon and the number of slices."""
    fastest: dict[str, float] = {}
    for name, taken in us.items():
        match = _TILE.search(name)
        if match is None:
            raise ValueError(f"{name} names no tile; allowed: names of convolution kernels")
        tile = DEPTHWISE if f"_{DEPTHWISE}_" in name else match[1]
        fastest[tile] = min(taken, fastest.get(tile, math.inf))
    return fastest


def choices(problems: Sequence[Mapping[str, float]]) -> list[tuple[float, float, tuple[str, ...]]]:
    """For each number of tiles: best geometric mean, its worst ratio and the tiles; ``problems`` are times by tile."""
    tiles = sorted({tile for times in problems for tile in times} - {DEPTHWISE})
    best = []
    for count in range(1, len(tiles) + 1):
        ranked = []
        for chosen in itertools.combinations(tiles, count):
            ratios = [
                min(times.values()) / min(times.get(tile, math.inf) for tile in (*chosen, DEPTHWISE))
                for times in problems
            ]
            if min(ratios) > 0:
                ranked.append((geometric_mean(ratios), min(ratios), chosen))
        best.append(max(ranked))
    return best


def main() -> int:
    """Print the choices of each direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--reach", type=float, default=0.99, help="geometric mean that a release set reaches")
    options = parser.parse_args()
    results: list[dict[str, Any]] = json.loads(options.sweep.read_text())["results"]
    for direction in dict.fromkeys(row["direction"] for row in results):
        problems = [by_tile(row["us"]) for row in results if row["direction"] == direction]
        print(f"{direction}, {len(problems)} problems")
        reached = False
        for mean, worst, tiles in choices(problems):
            mark = " <- release" if mean >= options.reach and not reached else ""
            reached = reached or bool(mark)
            print(f"  {len(tiles)}: {mean:.3f} (worst {worst:.2f}) {' '.join(tiles)}{mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
