"""Errors of predicted times against published ones, and how often the fastest kernel is predicted to be the fastest.

A table names only the fastest kernel of a problem. Candidates are the kernels that were tried: for the CK Tile
dispatcher its tiles that divide N and K, for CK all tiles that were the fastest for some problem of the family. A
kernel's rank is one more than the number of candidates predicted to be faster; candidates predicted to be equally fast
rank before it.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from amd.published import Row

from kernelwright.arch import Arch, load
from kernelwright.codegen.formulas.cdna import Kernel, estimate
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Device
from kernelwright.codegen.formulas.products import Problem
from kernelwright.codegen.operations.gemm.formulas import tiles as bounds

FOLDS = 4
HELD_OUT_FOLD = 0
"""Number of folds of (N, K) pairs: constants are fitted to the other folds."""
NEAR = 0.25
Tile = tuple[int, int, int, int, int]
SCALED_SHARE = {"gfx942": 0.8703, "gfx950": 0.8}
"""Fraction of the matrix instruction rate in kernels that multiply by scales of blocks: fitted with CDNA3's constants,
a guess for CDNA4, for which no fit has such kernels."""


def fold(row: Row) -> int:
    """The fold of the problem's N and K, the same in every table."""
    return hashlib.sha256(f"{row.n} {row.k}".encode()).digest()[0] % FOLDS


def ck_tile_tiles() -> list[Tile]:
    """Tiles of the dispatcher's table: 64 to 256 a side, 64 to 256 of K, at most 32 KiB of operands; four waves.

    Waves are assumed to be two by two: for tiles of 16,384 elements, other divisions were the fastest in one case of
    14.
    """
    sides, depths = (64, 128, 192, 256), (64, 128, 256)
    return [(m, n, k, 2, 2) for m, n, k in itertools.product(sides, sides, depths) if (m + n) * k <= 32768]


def candidates(rows: Sequence[Row]) -> dict[str, list[Tile]]:
    """The tiles of each family on all devices, in ascending order."""
    by_family: dict[str, set[Tile]] = defaultdict(set)
    for row in rows:
        by_family[row.family].add(row.tile)
    by_family |= {"ck_tile_fp8": set(ck_tile_tiles())} if "ck_tile_fp8" in by_family else {}
    return {family: sorted(tiles) for family, tiles in by_family.items()}


def tried(row: Row, tiles: Sequence[Tile]) -> list[Tile]:
    """The candidates for a problem: kernels of the dispatcher's table do not pad N and K."""
    if row.family != "ck_tile_fp8":
        return list(tiles)
    return [tile for tile in tiles if row.n % tile[1] == 0 and row.k % tile[2] == 0]


def fastest(row: Row) -> Tile:
    """The kernel named by the table, in the form of a candidate."""
    return (*row.tile[:3], 2, 2) if row.family == "ck_tile_fp8" else row.tile


def inputs(row: Row, tile: Tile, arch: Arch, scaled_share: float) -> tuple[Problem, Kernel, Device]:
    """Inputs of the formula. CK clears C in a separate launch before slices of K are added to it."""
    device = device_of(arch, "bf16" if row.size == 2 else "fp8", row.units)
    if row.scaled:
        device = device._replace(rate=device.rate * scaled_share)
    batch = float(row.batch)
    problem = Problem(row.m, row.n, row.k, batch, row.split_k, row.size, row.size, 2, batch, batch, False, 0)
    kernel = Kernel(*tile, 1, row.shuffled, False, row.split_k > 1, row.arch == "gfx950")
    return problem, kernel, device


@dataclass(frozen=True)
class Evaluated:
    """Predicted time of a row, and the rank of its kernel among the candidates."""

    row: Row
    us: float
    rank: int

    @property
    def error(self) -> float:
        """Absolute relative error of the predicted time."""
        return abs(self.us / self.row.us - 1)


def fitted(p: Problem, t: Kernel, d: Device) -> float:
    """Microseconds by the formula with fitted constants."""
    return estimate(p, t, d, math.inf).total_us


def bound(p: Problem, t: Kernel, d: Device) -> float:
    """Microseconds by stated rates alone, as for architectures without published times."""
    return bounds.estimate(p, bounds.Kernel(*t[:3], t.stream_k, t.twice), d, math.inf).total_us


def evaluate(
    rows: Sequence[Row], tiles: Mapping[str, Sequence[Tile]], by: Callable[[Problem, Kernel, Device], float] = fitted
) -> list[Evaluated]:
    """Evaluate each row by a formula."""
    archs = {name: load(name) for name in {row.arch for row in rows}}

    def microseconds(row: Row) -> Callable[[Tile], float]:
        share = SCALED_SHARE[row.arch]
        return lambda tile: by(*inputs(row, tile, archs[row.arch], share))

    evaluations = []
    for row in rows:
        us = microseconds(row)
        own, others = us(fastest(row)), [us(tile) for tile in tried(row, tiles[row.family]) if tile != fastest(row)]
        evaluations.append(Evaluated(row, own, 1 + sum(other <= own for other in others)))
    return evaluations


def summary(evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """Errors, and frequencies of ranks."""
    errors = sorted(one.error for one in evaluated)
    ratios = [one.us / one.row.us for one in evaluated]
    count = len(evaluated)
    return {
        "rows": count,
        "mean error": round(statistics.mean(errors), 4),
        "median error": round(statistics.median(errors), 4),
        "P90 error": round(errors[math.ceil(0.9 * count) - 1], 4),
        "within 25 %": round(sum(error <= NEAR for error in errors) / count, 3),
        "predicted over published": round(statistics.median(ratios), 3),
        "first": round(sum(one.rank == 1 for one in evaluated) / count, 3),
        "first three": round(sum(one.rank <= 3 for one in evaluated) / count, 3),
    }
