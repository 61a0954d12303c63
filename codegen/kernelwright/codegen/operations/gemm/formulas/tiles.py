"""Predicted time of a GEMM on AMD GPUs, and of grouped ones on all GPUs: tile and wave quantisation on a roofline.

t_m t_n split_k = t tiles over U compute units need w = ceil(t / U) waves; u = min(U, t) run at a time.

* k' = ceil(ceil(k / tile_k) / split_k) tile_k
* compute = w 2 tile_m tile_n k' / (operations per clock and unit * clock)
* fill = w (tile_m bytes_a + tile_n bytes_b) k' / (48 bytes per clock * clock): caches to one unit's LDS
* memory = (operands + results) / bandwidth
* results = m n bytes_c (split_k + [beta != 0])

and the launch takes the longest of the three. Padding is in the tiles and in k': a partial tile costs a whole one. With
split_k > 1, slices pass their sums through memory in 4 bytes each. A second launch adds slices up on AMD GPUs and
overlaps with nothing: reading them is taken out of the memory time and added to the whole. Stream-K's partial tiles
likewise.

A batch multiplies tiles and bytes, except for a shared operand, which is read once. Stream-K cuts t tiles of i steps
into U equal parts, so nothing is quantised: compute = ceil(t i / U) steps, and each unit writes and reads one partial
tile in 4 bytes per element. In a grouped problem all tiles share the units: w counts the tiles of all groups, a wave
takes the mean of their times, and bytes add up.

Tiles that run together share panels through the last-level cache. The v = max(1, u / split_k) output tiles of a wave
are taken to be a rectangle of r rows and v / r columns of tiles, r the power of two (at most t_m) that reads least;
memory then gives each row its panel of A once, and each column its panel of B:
operands = (t_m t_n / v) k (r (m / t_m) bytes_a + (v / r) (n / t_n) bytes_b).

The rates are peaks, so predictions are near lower bounds; they were not fitted to measurements of AMD GPUs.

Sources: NVIDIA, Matrix Multiplication Background User's Guide, "Tile Quantization" and "Wave Quantization"; Williams,
Waterman, Patterson, "Roofline", CACM 52(4), 2009; NVIDIA A100 white paper (5120 bytes per clock from L2 to 108 SMs: 47
each) and AMD CDNA 3 white paper (2 KiB per clock from L2 to the 38 units of a die: 54 each), for fill.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil
from kernelwright.codegen.formulas.products import SECOND_LAUNCH_US, SUM_BYTES, Problem, shared_panels

FILL_BYTES_PER_CLOCK = 48


class Kernel(NamedTuple):
    """Traits of a kernel that the time depends on."""

    tile_m: float
    tile_n: float
    tile_k: float
    stream_k: bool
    twice: bool  # a second kernel adds up the partial sums of k that workgroups leave in memory


class Cost(NamedTuple):
    """Work of a problem's tiles."""

    tiles: float  # in the whole batch, slices included
    steps: float  # steps of tile_k per tile
    clocks: float  # per step
    fill: float  # bytes per step
    volume: float  # multiplications per step, padding included


def cost(p: Problem, t: Kernel, d: Device) -> Cost:
    """The work of one problem, or of one group."""
    tiles = ceil(p.m / t.tile_m) * ceil(p.n / t.tile_n) * p.split * p.batch
    volume = t.tile_m * t.tile_n * t.tile_k
    fill = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k
    return Cost(tiles, ceil(ceil(p.k / t.tile_k) / p.split), 2 * volume / d.rate, fill, volume)


def memory_bytes(p: Problem, t: Kernel, running: float) -> float:
    """Bytes that a launch reads and writes with ``running`` concurrent tiles."""
    tiles_m = ceil(p.m / t.tile_m)
    tiles_n = ceil(p.n / t.tile_n)
    v = max(1.0, min(running / p.split, tiles_m * tiles_n))
    rounds = tiles_m * tiles_n / v * p.k
    panels = shared_panels(v, tiles_m, tiles_n, p.m * p.size_a / tiles_m, p.n * p.size_b / tiles_n)
    sums = 2 * SUM_BYTES * p.split if p.split > 1 else 0.0
    results = p.m * p.n * (p.size_c * (2.0 if p.accumulates else 1.0) + sums) * p.batch
    return rounds * panels.a * p.read_a + rounds * panels.b * p.read_b + results + p.d_elements * p.size_c


def estimate(p: Problem, t: Kernel, d: Device, most_us: float) -> Estimate:
    """The time of a launch. It may end early, with a total above ``most_us`` and at most what it would have been."""
    if p.m == 0 or p.n == 0:
        return Estimate()
    c = cost(p, t, d)
    waves = c.tiles / d.units if t.stream_k else ceil(c.tiles / d.units)
    steps = ceil(c.tiles * c.steps / d.units) if t.stream_k else waves * c.steps  # for the busiest unit
    compute_us = steps * c.clocks / d.clocks_per_us
    fill_us = steps * c.fill / FILL_BYTES_PER_CLOCK / d.clocks_per_us
    inside = max(compute_us, fill_us)
    if inside > most_us:
        return Estimate(c.tiles, waves, compute_us, fill_us, total_us=inside)  # whatever memory takes
    moved = memory_bytes(p, t, min(d.units, c.tiles))
    left = 0.0  # partial sums, in memory
    if t.stream_k:
        left = SUM_BYTES * t.tile_m * t.tile_n * min(d.units, c.tiles * c.steps)
        moved += 2 * left
    elif t.twice:
        left = SUM_BYTES * p.split * p.m * p.n * p.batch
        if p.split == 1:
            moved += 2 * left
    memory_us = moved / d.bytes_per_us
    second_us = left / d.bytes_per_us
    once = max(inside, memory_us)
    total_us = max(inside, memory_us - second_us) + second_us + SECOND_LAUNCH_US if t.twice else once
    padded = c.tiles * c.steps * c.volume
    useful = p.m * p.n * p.k * p.batch / padded if padded > 0 else 1.0
    return Estimate(c.tiles, waves, compute_us, fill_us, memory_us, total_us, useful)


class Grouped(NamedTuple):
    """Sums over the groups of a grouped problem."""

    tiles: float
    clocks: float
    fill: float
    moved: float
    asked: float
    padded: float


def add_group(so_far: Grouped, p: Problem, t: Kernel, d: Device) -> Grouped:
    """The sums with one more group, which is not empty."""
    c = cost(p, t, d)
    steps = c.tiles * c.steps
    return Grouped(
        so_far.tiles + c.tiles,
        so_far.clocks + steps * c.clocks,
        so_far.fill + steps * c.fill,
        so_far.moved + memory_bytes(p, t, min(d.units, c.tiles)),
        so_far.asked + p.m * p.n * p.k,
        so_far.padded + steps * c.volume,
    )


def estimate_groups(g: Grouped, d: Device) -> Estimate:
    """The time of a launch of all groups."""
    if g.tiles == 0:
        return Estimate()
    waves = ceil(g.tiles / d.units)
    waves_us = waves / g.tiles / d.clocks_per_us
    compute_us = g.clocks * waves_us
    fill_us = g.fill * waves_us / FILL_BYTES_PER_CLOCK
    memory_us = g.moved / d.bytes_per_us
    useful = g.asked / g.padded if g.padded > 0 else 1.0
    return Estimate(g.tiles, waves, compute_us, fill_us, memory_us, max(compute_us, fill_us, memory_us), useful)
