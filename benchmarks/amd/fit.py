"""Fits the constants of CDNA3 or CDNA4 in ``formulas/cdna.py`` to published times.

``python benchmarks/amd/fit.py gfx950 TABLE.csv.gz … --families ck_tile_fp8`` fits to all folds but the held-out one
and prints errors and ranks of each part; ``--write`` puts the constants into the formula. ``--folds`` leaves out each
fold in turn: what is predicted of problems whose N and K no fit saw. ``--without NAME`` leaves out tables and
``--units`` devices. The search starts at the same guesses and is the same in every run. Needs gcc and NumPy.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from amd.evaluation import (
    FOLDS,
    HELD_OUT_FOLD,
    SCALED_SHARE,
    Evaluated,
    Tile,
    candidates,
    fastest,
    fold,
    inputs,
    summary,
    tried,
)
from amd.published import Row, read
from selection.formula import ROOT, Formula, write_numbers

from kernelwright.arch import load

MODULE = "formulas.cdna"
PREFIXES = {"gfx942": "CDNA3", "gfx950": "CDNA4"}
# Where the search begins.
GUESSES = {
    "LAUNCH_US": 1.8, "MATRIX_SHARE": 0.75, "LDS_BYTES_PER_CLOCK": 250.0, "FILL_BYTES_PER_CLOCK": 64.0,
    "UNHIDDEN": 0.6, "STEP_CLOCKS": 50.0, "LATENCY_CLOCKS": 200.0, "BUSY": 0.25, "ODD": 1.1, "TILE_CLOCKS": 500.0,
    "FIRST_BYTES_PER_CLOCK": 64.0, "STORE_BYTES_PER_CLOCK": 16.0, "MEMORY_SHARE": 1.0, "CACHE_SHARE": 1.5,
    "OVERLAP": 0.2,
}  # fmt: skip
SCALED = "SCALED_SHARE"  # of the tables alone, see evaluation.py
RANKING = 2.0  # what being predicted slower than another candidate costs, over an error of the same size
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Table:
    """Rows, and the formula's inputs for each of their candidates, grouped by row.

    :ivar own: index of the fastest kernel; ``starts`` are the first candidates of the rows.
    """

    rows: list[Row]
    read: Array
    own: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    scaled: np.ndarray[Any, Any]
    us: Array


def table(rows: Sequence[Row], tiles: Mapping[str, Sequence[Tile]]) -> Table:
    """Build a table, in the same order in every run."""
    archs = {name: load(name) for name in {row.arch for row in rows}}
    read: list[list[float]] = []
    own, starts, scaled = [], [], []
    for row in rows:
        starts.append(len(read))
        own.append(len(read))
        for tile in (fastest(row), *(one for one in tried(row, tiles[row.family]) if one != fastest(row))):
            read.append([float(value) for record in inputs(row, tile, archs[row.arch], 1.0) for value in record])
            scaled.append(row.scaled)
    return Table(
        list(rows),
        np.array(read),
        np.array(own),
        np.array(starts),
        np.array(scaled),
        np.array([row.us for row in rows]),
    )


class Fit:
    """Constants of one architecture, evaluated on a table."""

    def __init__(self, arch: str, formula: Formula) -> None:
        self.arch, self.formula = arch, formula
        self.rate = formula.columns.index("Device.rate")

    def predict(self, table: Table, numbers: Mapping[str, float]) -> Array:
        """Predicted microseconds of all candidates."""
        read = table.read.copy()
        read[table.scaled, self.rate] *= numbers[SCALED]
        named = {f"{PREFIXES[self.arch]}_{name}": value for name, value in numbers.items() if name != SCALED}
        return self.formula.predict(read, named)

    def cost(self, table: Table, numbers: Mapping[str, float]) -> float:
        """Mean errors of times, and of the choice of the fastest kernel; all tables have equal weight."""
        us = self.predict(table, numbers)
        own, least = us[table.own], np.minimum.reduceat(us, table.starts)
        each = np.abs(np.log(own / table.us)) + RANKING * np.log(own / least)
        parts = np.array([f"{row.source} {row.family}" for row in table.rows])
        return float(np.mean([each[parts == part].mean() for part in sorted(set(parts))]))

    def search(self, table: Table, starts: int, steps: int) -> dict[str, float]:
        """The best result of several random descents."""
        names = [*GUESSES, *([SCALED] if table.scaled.any() else [])]
        best: dict[str, float] = {}
        least = math.inf
        for seed in range(starts):
            rng = np.random.default_rng(seed)
            now = {**GUESSES, SCALED: 0.8}
            had = self.cost(table, now)
            for step in range(steps):
                then = dict(now)
                for name in rng.choice(names, size=int(rng.integers(1, 4)), replace=False):
                    then[name] *= math.exp(rng.normal() * (0.3 if step < steps // 3 else 0.06))
                if (got := self.cost(table, then)) < had:
                    now, had = then, got
            if had < least:
                best, least = now, had
            print(f"start {seed}: {had:.4f}, best {least:.4f}", file=sys.stderr, flush=True)
        return {name: float(f"{value:.4g}") for name, value in best.items()}

    def evaluated(self, table: Table, numbers: Mapping[str, float]) -> list[Evaluated]:
        """As evaluation.evaluate, with these constants."""
        us = self.predict(table, numbers)
        ends = [*table.starts[1:], len(us)]
        return [
            Evaluated(row, float(us[own]), int((us[start:end] <= us[own]).sum()))
            for row, own, start, end in zip(table.rows, table.own, table.starts, ends, strict=True)
        ]


def parts(evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """Summaries by family, device and table."""
    groups: dict[str, list[Evaluated]] = {}
    for one in evaluated:
        groups.setdefault(f"{one.row.family}, {one.row.units} CUs, {one.row.source}", []).append(one)
    return {name: summary(part) for name, part in sorted(groups.items())}


def thinned(rows: Sequence[Row], most: int) -> list[Row]:
    """At most this many rows of each table, evenly spaced."""
    by_source: dict[str, list[Row]] = {}
    for row in rows:
        by_source.setdefault(f"{row.source} {row.family} {row.units}", []).append(row)
    return [row for one in by_source.values() for row in one[:: max(1, -(-len(one) // most))]]


def main() -> None:
    """Fit, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", choices=PREFIXES)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--families", nargs="+", required=True, help="that constants are fitted to")
    parser.add_argument("--without", nargs="*", default=[], help="parts of names of tables that no fit sees")
    parser.add_argument("--units", type=int, nargs="+", help="devices that constants are fitted to")
    parser.add_argument("--most", type=int, default=400, help="rows of a table that a fit reads")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    formula = Formula(MODULE, ends_early=True)
    fit = Fit(options.arch, formula)
    every = [row for path in options.tables for row in read(path)]
    tiles = candidates(every)
    # Newer tables include rows of older ones.
    rows = list({replace(row, source=""): row for row in every if row.arch == options.arch}.values())

    def seen(row: Row) -> bool:
        return (
            row.family in options.families
            and not any(part in row.source for part in options.without)
            and (not options.units or row.units in options.units)
        )

    whole = table(rows, tiles)
    result: dict[str, Any] = {}
    chosen: dict[str, float] = {}
    left_out: list[Evaluated] = []
    for part in range(FOLDS) if options.folds else [HELD_OUT_FOLD]:
        fitted = table(thinned([row for row in rows if seen(row) and fold(row) != part], options.most), tiles)
        numbers = fit.search(fitted, options.starts, options.steps)
        evaluated = fit.evaluated(whole, numbers)
        left_out += [one for one in evaluated if seen(one.row) and fold(one.row) == part]
        if part == HELD_OUT_FOLD:
            chosen = numbers
            result["constants"] = numbers
            result["fitted rows"] = len(fitted.rows)
            result["seen"] = parts([one for one in evaluated if seen(one.row) and fold(one.row) != part])
            result["N and K held out"] = parts([one for one in evaluated if seen(one.row) and fold(one.row) == part])
            result["other tables, devices and families"] = parts([one for one in evaluated if not seen(one.row)])
    if options.folds:
        result["each N and K held out in turn"] = parts(left_out)
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    if options.write:
        named = {f"{PREFIXES[options.arch]}_{name}": value for name, value in chosen.items() if name != SCALED}
        write_numbers(ROOT / formula.source.path, named)
        if chosen[SCALED] != SCALED_SHARE[options.arch] and fitted.scaled.any():
            print(f"evaluation.py: SCALED_SHARE[{options.arch!r}] = {chosen[SCALED]}", file=sys.stderr)


if __name__ == "__main__":
    main()
