"""How near choices by predicted times come to the fastest of ten convolution kernels whose times AMD published.

``benchmarks/results/amd_published_conv_ck_tile.csv.gz`` has 32 of the problems of ``tile_engine/ops/grouped_conv/
training_data_forward_bf16_20.csv`` (ROCm/rocm-libraries, 10cdca2d): forward, bf16, one group, on an MI355X, with the
times of CK Tile's compv3 kernels. Times of its compv4 kernels are left out: they are the same for tiles of different
sizes, so at least one of them is of another kernel. ``ADDRESS_CLOCKS_PER_BYTE``, ``WAIT_CLOCKS_PER_BYTE`` and
``POINT_STORE`` of ``formulas/cdna.py`` are fitted to the first twelve problems; the others only measure.

``python benchmarks/amd/convolutions.py`` prints the shares of both parts; ``--fit`` fits the three constants.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.arch import load
from kernelwright.codegen.formulas import cdna
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.operations.convolution.formulas.cdna import estimate
from kernelwright.codegen.operations.convolution.formulas.problem import Problem

TABLE = Path(__file__).resolve().parents[1] / "results/amd_published_conv_ck_tile.csv.gz"
FITTED = 12
"""Problems that constants are fitted to, at the beginning of the table."""
NUMBERS = ("ADDRESS_CLOCKS_PER_BYTE", "WAIT_CLOCKS_PER_BYTE", "POINT_STORE")


@dataclass(frozen=True)
class Measured:
    """A convolution, and the microseconds per tile."""

    problem: Problem
    us: dict[tuple[int, int, int], float]


def read(path: Path = TABLE) -> list[Measured]:
    """The problems of the table."""
    with gzip.open(path, "rt") as file:
        return [_measured(raw) for raw in csv.DictReader(file)]


def _measured(raw: dict[str, str]) -> Measured:
    tiles = {name.removeprefix("us_"): float(value) for name, value in raw.items() if name.startswith("us_")}
    n, c, k, height, width, y, x, stride_h, stride_w, pad_h, pad_w = (
        int(raw[name]) for name in ("n", "c", "k", "hi", "wi", "y", "x", "stride_h", "stride_w", "pad_h", "pad_w")
    )
    out_h, out_w = (height + 2 * pad_h - y) // stride_h + 1, (width + 2 * pad_w - x) // stride_w + 1
    problem = Problem(
        False, False, 1, 2, n, c, k, 1, 1, height, width, 1, out_h, out_w, 1, y, x, 1, stride_h, stride_w, 1, False, 0
    )
    us = {tuple(int(side) for side in name.split("x")): value for name, value in tiles.items()}
    return Measured(problem, us)  # type: ignore[arg-type]


def predicted(one: Measured) -> dict[tuple[int, int, int], float]:
    """Microseconds per tile; four waves, in one row if the tile has 16 rows, else in two."""
    arch = load("gfx950")
    device = device_of(arch, "bf16", arch.compute_units)

    def microseconds(tile: tuple[int, int, int]) -> float:
        waves = (1, 4) if tile[0] == 16 else (2, 2)
        kernel = cdna.Kernel(*tile, *waves, 1, False, False, False, True)
        return estimate(one.problem, kernel, 1, 0, device, math.inf).total_us

    return {tile: microseconds(tile) for tile in one.us}


def summary(problems: Sequence[Measured]) -> dict[str, Any]:
    """Fractions of the fastest kernel's speed that choices reach, and errors of predicted times."""
    shares, of_three, errors = [], [], []
    for one in problems:
        times = predicted(one)
        order = sorted(times, key=times.__getitem__)
        least = min(one.us.values())
        shares.append(least / one.us[order[0]])
        of_three.append(least / min(one.us[tile] for tile in order[:3]))
        errors += [abs(times[tile] / one.us[tile] - 1) for tile in times]
    shares.sort()
    return {
        "problems": len(problems),
        "mean share of the fastest": round(statistics.mean(shares), 4),
        "P10": round(shares[math.ceil(0.1 * len(shares)) - 1], 3),
        "min": round(shares[0], 3),
        "best of three": round(statistics.mean(of_three), 4),
        "mean error": round(statistics.mean(errors), 3),
    }


def _cost(problems: Sequence[Measured]) -> float:
    total = 0.0
    for one in problems:
        times = predicted(one)
        logs = [math.log(times[tile] / one.us[tile]) for tile in times]
        choice = min(times, key=times.__getitem__)
        loss = math.log(one.us[choice] / min(one.us.values()))
        total += 0.5 * statistics.mean(map(abs, logs)) + statistics.pstdev(logs) + 2 * loss
    return total / len(problems)


def fit(problems: Sequence[Measured], steps: int) -> dict[str, float]:
    """A random descent from initial guesses; the same in every run."""
    draw = random.Random(0)
    now, had = dict(zip(NUMBERS, (0.02, 0.02, 1.5), strict=True)), math.inf
    for step in range(steps):
        name = draw.choice(NUMBERS)
        then = now | {name: now[name] * math.exp(draw.gauss(0, 0.5 if step < steps // 3 else 0.1))}
        for key, value in then.items():
            setattr(cdna, key, value)
        if (got := _cost(problems)) < had:
            now, had = then, got
    return {name: float(f"{value:.3g}") for name, value in now.items()}


def main() -> None:
    """Print the summaries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    problems = read()
    result: dict[str, Any] = {}
    if options.fit:
        result["constants"] = fit(problems[:FITTED], options.steps)
        for name, value in result["constants"].items():
            setattr(cdna, name, value)
    result |= {"fitted": summary(problems[:FITTED]), "held out": summary(problems[FITTED:])}
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
