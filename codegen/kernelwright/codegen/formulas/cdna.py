"""Predicted time of a matrix product on CDNA3 and CDNA4, with constants fitted to times that AMD published.

A step along k takes the longest of three parts and a share of the others: multiplying, moving operands through LDS
(each wave reads its rows of A and columns of B, and what arrives is written once), and filling a stage from caches. The
clocks of barriers are added. A compute unit holds several workgroups, as far as LDS and registers allow; a single one
waits for the latency of its loads, several hide it. The clock falls with the share of busy units, because of their
power. Then a tile is stored, and its first stage is waited for.

Operands and results pass memory once. The chip's dies have an L2 cache each, and every eighth workgroup is on the same
die: operands that its concurrent tiles need, in the rectangle that needs least, come from the cache that all dies
share. The launch takes the longer of units and memory and a share of the shorter.

The constants are what ``benchmarks/amd/fit.py`` finds for tables that AMD published: of CK Tile's and CK's kernels on
MI355X and of CK's on MI300X. ``docs/benchmarks.md`` says how far predictions are off on problems that no fit saw. None
of the times were measured by us. ``SECOND_LAUNCH_US`` (in ``products``) and ``DIES`` were set by hand;
``ACCUMULATING_REGISTERS`` is what compiled kernels hold besides their accumulators.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor
from kernelwright.codegen.formulas.products import SECOND_LAUNCH_US, SUM_BYTES, Problem, shared_panels

CDNA3_LAUNCH_US = 2.679
CDNA3_MATRIX_SHARE = 0.7766
CDNA3_LDS_BYTES_PER_CLOCK = 494
CDNA3_FILL_BYTES_PER_CLOCK = 41.93
CDNA3_UNHIDDEN = 0.4495
CDNA3_STEP_CLOCKS = 9.433
CDNA3_LATENCY_CLOCKS = 333.2
CDNA3_BUSY = 0.5116
CDNA3_ODD = 1.027
CDNA3_TILE_CLOCKS = 10.38
CDNA3_FIRST_BYTES_PER_CLOCK = 64.14
CDNA3_STORE_BYTES_PER_CLOCK = 9.213
CDNA3_MEMORY_SHARE = 0.7423
CDNA3_CACHE_SHARE = 9.01
CDNA3_OVERLAP = 0.4698
CDNA4_LAUNCH_US = 1.979
CDNA4_MATRIX_SHARE = 0.9683
CDNA4_LDS_BYTES_PER_CLOCK = 336.3
CDNA4_FILL_BYTES_PER_CLOCK = 105.9
CDNA4_UNHIDDEN = 0.5157
CDNA4_STEP_CLOCKS = 96.2
CDNA4_LATENCY_CLOCKS = 149.3
CDNA4_BUSY = 0.4463
CDNA4_ODD = 1.133
CDNA4_TILE_CLOCKS = 351.1
CDNA4_FIRST_BYTES_PER_CLOCK = 61.99
CDNA4_STORE_BYTES_PER_CLOCK = 10.55
CDNA4_MEMORY_SHARE = 0.8982
CDNA4_CACHE_SHARE = 3.783
CDNA4_OVERLAP = 0.003909
DIES = 8
LANES = 64
REGISTERS = 512  # per lane, for all waves of a SIMD
SIMDS = 4
ACCUMULATING_REGISTERS = 128
# For convolutions, vector instructions compute the addresses of points and results.
ADDRESS_CLOCKS_PER_BYTE = 0.0156  # of a stage
WAIT_CLOCKS_PER_BYTE = 0.0647  # of a stage, which other workgroups hide
POINT_STORE = 3.71  # times the clocks of storing


class Rates(NamedTuple):
    """Constants of one architecture."""

    launch_us: float
    matrix_share: float  # share of the stated rate of matrix instructions
    lds: float  # bytes per clock
    fill: float  # bytes per clock, from caches into one unit
    unhidden: float  # share of the shorter parts of a step, added to the longest
    step: float  # clocks of barriers per step
    latency: float  # clocks per step that a lone workgroup waits
    busy: float  # share by which it is slower where all units are busy
    odd: float  # slowdown where an extent of the tile is no power of two
    tile: float  # clocks until the first operands are on their way and after the last
    first: float  # bytes per clock in the first stage
    store: float  # bytes per clock in the epilogue
    memory: float  # share of the stated bandwidth, for operands and results once
    cache: float  # likewise, for what dies read side by side
    overlap: float  # share of the shorter of units and memory


class Kernel(NamedTuple):
    """The traits of a kernel that the time depends on."""

    tile_m: float
    tile_n: float
    tile_k: float
    wave_m: float
    wave_n: float
    wave_k: float
    shuffled: bool  # B goes from memory straight to registers
    stream_k: bool
    twice: bool  # a second kernel adds up the partial sums of k that workgroups leave in memory
    newer: bool  # CDNA4


class Implicit(NamedTuple):
    """The GEMM of a convolution. A counts every filter point separately, but memory holds each element once."""

    m: float
    n: float
    k: float
    groups: float
    split: float
    size: float  # bytes of an element
    moved: float  # bytes of all tensors, once
    shared: float  # share of the bytes of A that is in memory


class More(NamedTuple):
    """What a launch takes in addition to that of a GEMM."""

    once: float  # bytes of operands in memory
    shared: float  # share of the bytes of A that is in memory
    step: float  # clocks per byte of a stage
    wait: float  # likewise, that other workgroups hide
    store: float  # factor of the clocks of storing


def rates(newer: bool) -> Rates:
    """Return the constants of CDNA4, or of CDNA3."""
    if newer:
        return Rates(
            CDNA4_LAUNCH_US, CDNA4_MATRIX_SHARE, CDNA4_LDS_BYTES_PER_CLOCK, CDNA4_FILL_BYTES_PER_CLOCK,
            CDNA4_UNHIDDEN, CDNA4_STEP_CLOCKS, CDNA4_LATENCY_CLOCKS, CDNA4_BUSY, CDNA4_ODD, CDNA4_TILE_CLOCKS,
            CDNA4_FIRST_BYTES_PER_CLOCK, CDNA4_STORE_BYTES_PER_CLOCK, CDNA4_MEMORY_SHARE, CDNA4_CACHE_SHARE,
            CDNA4_OVERLAP,
        )  # fmt: skip
    return Rates(
        CDNA3_LAUNCH_US, CDNA3_MATRIX_SHARE, CDNA3_LDS_BYTES_PER_CLOCK, CDNA3_FILL_BYTES_PER_CLOCK,
        CDNA3_UNHIDDEN, CDNA3_STEP_CLOCKS, CDNA3_LATENCY_CLOCKS, CDNA3_BUSY, CDNA3_ODD, CDNA3_TILE_CLOCKS,
        CDNA3_FIRST_BYTES_PER_CLOCK, CDNA3_STORE_BYTES_PER_CLOCK, CDNA3_MEMORY_SHARE, CDNA3_CACHE_SHARE,
        CDNA3_OVERLAP,
    )  # fmt: skip


def power_of_two(extent: float) -> bool:
    """Whether an extent of at least 1 is a power of two."""
    rest = extent
    while rest > 1:
        rest *= 0.5
    return rest == 1


def step_clocks(p: Problem, t: Kernel, d: Device, r: Rates, busy: float, more: float) -> float:
    """Clocks of one step along k, if loads arrive in time; ``more`` are clocks per byte of its stage."""
    multiply = 2 * t.tile_m * t.tile_n * t.tile_k / (d.rate * r.matrix_share)
    stage = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k
    through_a = t.tile_m * p.size_a * (t.wave_n + 1)
    through_b = 0.0 if t.shuffled else t.tile_n * p.size_b * (t.wave_m + 1)
    through = (through_a + through_b) * t.tile_k / r.lds
    fill = stage / r.fill
    longest = max(multiply, max(through, fill))
    odd = 1.0 if power_of_two(t.tile_m) and power_of_two(t.tile_n) else r.odd
    clocks = longest + r.unhidden * (multiply + through + fill - longest) + r.step + more * stage
    return clocks * (1 + r.busy * busy) * odd


def workgroups(p: Problem, t: Kernel, d: Device) -> float:
    """Workgroups that a compute unit holds, at least one, as LDS and registers allow."""
    waves = t.wave_m * t.wave_n * t.wave_k
    sums = t.tile_m * t.tile_n / (waves * LANES)
    by_registers = floor(REGISTERS / (sums + ACCUMULATING_REGISTERS) * SIMDS / waves)
    by_lds = floor(d.lds_bytes / ((t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k))
    return max(1.0, min(by_lds, by_registers))


def cached_bytes(p: Problem, t: Kernel, running: float, shared: float) -> float:
    """Bytes of operands that dies read, with ``running`` concurrent tiles and a share of A in memory."""
    tiles_m = ceil(p.m / t.tile_m)
    tiles_n = ceil(p.n / t.tile_n)
    v = max(1.0, min(running / (p.split * p.batch * DIES), tiles_m * tiles_n))
    panels = shared_panels(v, tiles_m, tiles_n, p.m * p.size_a * shared / tiles_m, p.n * p.size_b / tiles_n)
    return tiles_m * tiles_n / v * p.k * (panels.a + panels.b) * p.batch


def launch(p: Problem, t: Kernel, d: Device, most_us: float, more: More) -> Estimate:
    """See :func:`estimate`."""
    r = rates(t.newer)
    tiles = ceil(p.m / t.tile_m) * ceil(p.n / t.tile_n) * p.split * p.batch
    whole_steps = ceil(p.k / t.tile_k)
    waves = max(1.0, tiles / d.units) if t.stream_k else ceil(tiles / d.units)
    steps = ceil(whole_steps / p.split)
    if t.stream_k:
        steps = ceil(tiles * steps / d.units) / waves
    places = workgroups(p, t, d)
    together = max(1.0, min(places, waves))
    step = step_clocks(p, t, d, r, tiles / (waves * d.units), more.step)
    stage = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k
    each = t.tile_m * t.tile_n * p.size_c * (2.0 if p.split > 1 or t.stream_k else 1.0) / r.store * more.store
    outside = waves / together * (r.tile + stage / r.first) + waves * each
    latency = r.latency + more.wait * stage
    compute_us = (steps * waves * step + outside) / d.clocks_per_us
    fill_us = (steps * waves / together * (step + latency) + outside) / d.clocks_per_us
    inside = max(compute_us, fill_us)
    if inside + r.launch_us > most_us:
        return Estimate(tiles, waves, compute_us, fill_us, total_us=inside + r.launch_us)

    sums = 2 * SUM_BYTES * p.split if p.split > 1 else 0.0
    results = p.m * p.n * (p.size_c * (2.0 if p.accumulates else 1.0) + sums) * p.batch + p.d_elements * p.size_c
    left = 0.0  # partial sums, in memory
    if t.stream_k:
        left = SUM_BYTES * t.tile_m * t.tile_n * min(d.units, tiles * whole_steps)
        results += 2 * left
    elif t.twice:
        left = SUM_BYTES * p.split * p.m * p.n * p.batch
        if p.split == 1:
            results += 2 * left
    bytes_per_us = d.bytes_per_us * r.memory
    cached = cached_bytes(p, t, min(tiles, d.units * places), more.shared) + results
    memory_us = max((more.once + results - left) / bytes_per_us, cached / (d.bytes_per_us * r.cache))
    second_us = left / bytes_per_us + SECOND_LAUNCH_US if t.twice else 0.0
    total_us = max(inside, memory_us) + r.overlap * min(inside, memory_us) + r.launch_us + second_us
    padded = tiles * whole_steps / p.split * t.tile_m * t.tile_n * t.tile_k
    useful = min(1.0, p.m * p.n * p.k * p.batch / padded) if padded > 0 else 1.0
    return Estimate(tiles, waves, compute_us, fill_us, memory_us, total_us, useful)


def estimate(p: Problem, t: Kernel, d: Device, most_us: float) -> Estimate:
    """The time of a launch. It may end early, with a total above ``most_us`` and at most what it would have been."""
    if p.m == 0 or p.n == 0:
        return Estimate()
    once = (p.m * p.size_a * p.read_a + p.n * p.size_b * p.read_b) * p.k
    return launch(p, t, d, most_us, More(once, 1.0, 0.0, 0.0, 1.0))


def implicit(g: Implicit, t: Kernel, d: Device, most_us: float) -> Estimate:
    """The time of a convolution's launch; it may end early in the same way."""
    p = Problem(g.m, g.n, g.k, g.groups, g.split, g.size, g.size, g.size, g.groups, g.groups, False, 0.0)
    results = g.m * g.n * g.size * g.groups
    once = max(0.0, g.moved - results)
    more = More(once, g.shared, ADDRESS_CLOCKS_PER_BYTE, WAIT_CLOCKS_PER_BYTE, POINT_STORE)
    return launch(p, t, d, most_us, more)
