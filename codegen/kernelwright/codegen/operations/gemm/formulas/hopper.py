"""Predicted time of a warp-specialised GEMM on Hopper.

Tiles come in whole clusters, which waves count. A step along k takes the longer of multiplying (each wgmma fetches its
64 rows and its columns from shared memory) and filling a stage (a workgroup of a cluster requests its share of the
operands and receives all of them), or both where only two stages fit, and a wait at barriers. Then a tile is stored, of
which pingpong shows a part. Memory delivers its rate if each multiprocessor has enough bytes in flight. The launch
takes the longer of computing and memory and a share of the shorter. The last slice of k adds up what the others left.

The numbers are what ``benchmarks/selection/fit.py`` finds for times on an H200: of 80 kernels on tuning problems
(``benchmarks/results/h200_gemm_tuning_*.csv.gz``) and of 52 kernels on 81 shapes (``h200_sweep_20261121.json``).
Predictions are within 16 % (standard deviation). ``STREAM_SLACK``, ``SWAPPED_SLACK`` and ``SHARED_SLACK`` were not
fitted but set by hand, the last two to decide between kernels of otherwise equal predicted time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor
from kernelwright.codegen.formulas.products import Product

ROWS_OF_INSTRUCTION = 64  # rows of a wgmma
BYTES_OF_INSTRUCTION = 32  # bytes of a wgmma along k
READ_ROWS_CLOCKS = 13.99  # clocks in which wgmma fetches its 64 rows from shared memory, whatever it computes
READ_COLUMN_CLOCKS = 0.25  # clocks for each column, 32 bytes at 128 bytes per clock
INSTRUCTION_SLACK = 0.8804  # measured clocks of wgmma over stated ones
FILL_BYTES_PER_CLOCK = 107.7  # from L2, for what one workgroup of a cluster requests
RECEIVE_BYTES_PER_CLOCK = 130.7  # into one multiprocessor, including what others requested
STEP_CLOCKS = 19.49  # barriers, per step along k
CLUSTER_STEP_CLOCKS = 38.99  # waiting for the other workgroups of a cluster
LATENCY_CLOCKS = 2043  # from a load to its arrival; all stages but one are in flight
STORE_BYTES_PER_CLOCK = 17.49  # in the epilogue
HIDDEN_STORE = 0.2305  # share that pingpong shows: its two tiles overlap
START_CLOCKS = 553.9  # until the first operands arrive
REREAD_SHARE = 1.86  # operands read again, relative to what a square wave of tiles reads again
MEMORY_SHARE = 0.8784  # share of the stated bandwidth
IN_FLIGHT_BYTES = 10250  # bytes that each multiprocessor must have requested to reach it
OVERLAP = 0.2718  # share of the shorter of computing and reading that is not hidden
LAUNCH_US = 1.273
CUT_US = 2.705  # clearing the flags of split-K and stream-K, and the wait for it
CUTTABLE_US = 0.7752  # for split-K kernels that split nothing
SLICE_US = 0.228  # each slice waits for the one before,
SLICE_ELEMENTS_PER_US = 26330  # and adds its tile to that of the others
STREAM_SLACK = 1.25  # for stream-K, whose tiles are finished by several workgroups
EPILOGUE_ELEMENTS = 16384  # elements that wait in shared memory to be stored
SWAPPED_SLACK = 1.02  # for kernels that compute the transposed product
SHARED_SLACK = 1.01  # for warp groups that share a tile
ANY_US = 0.3  # for an epilogue chosen at run time: its instructions come from farther away
COPIED_SHARE = 0.35  # share of wgmma's rate, where threads copy operands and multiply by mma.sync
COPIED_WORKGROUPS = 2  # workgroups per multiprocessor
COPIED_START_CLOCKS = 15000  # per tile: the first operands arrive, and results are stored element by element
# A selection needs thousands of estimates, and a division takes several times as long as a product.
INSTRUCTION_SHARE = 1 / BYTES_OF_INSTRUCTION
FILL_CLOCKS = 1 / FILL_BYTES_PER_CLOCK
RECEIVE_CLOCKS = 1 / RECEIVE_BYTES_PER_CLOCK
STORE_CLOCKS = 1 / STORE_BYTES_PER_CLOCK
SLICE_ELEMENT_US = 1 / SLICE_ELEMENTS_PER_US


class Kernel(NamedTuple):
    """Traits of a kernel that the time depends on."""

    tile_m: float
    tile_n: float
    tile_k: float
    warp_tile_m: float
    warp_tile_n: float
    cluster_m: float
    cluster_n: float
    pingpong: bool
    stream_k: bool
    cuttable: bool  # serves several slices of k
    any_epilogue: bool  # chosen at run time
    copied: bool  # threads copy operands and multiply themselves


@dataclass(frozen=True)
class Problem(Product):
    """A product, and the number of tensors of its result's shape."""

    size: float  # bytes of an element of the operands
    size_c: float
    results: float  # tensors of C's shape that are read and written: C, the previous C, D


def shared_panels(tile_m: float, tile_n: float, running: float, tiles_m: float, tiles_n: float) -> float:
    """Elements per step of k that ``running`` concurrent tiles need, in the rectangle that needs least."""
    least = running * (tile_m + tile_n)
    last = min(tiles_m, running)
    halved = running
    rows = 1.0
    while True:
        high = min(rows, tiles_m)
        columns = halved if rows <= tiles_m else running / tiles_m
        if columns <= tiles_n:
            needed = high * tile_m + max(1.0, columns) * tile_n
            if needed > least:
                return least  # and taller ones need still more
            least = needed
        if high >= last:
            return least
        rows *= 2
        halved *= 0.5


def both(inside: float, memory_us: float) -> float:
    """Combined time of computing and reading."""
    return max(inside, memory_us) + OVERLAP * min(inside, memory_us)


def copied(p: Problem, t: Kernel, d: Device) -> Estimate:
    """The same for a kernel whose threads copy operands: two workgroups share a multiprocessor and start together."""
    tiles = ceil(p.m / t.tile_m) * ceil(p.n / t.tile_n) * p.batch
    places = COPIED_WORKGROUPS * d.units
    waves = ceil(tiles / places)
    steps = ceil(p.k / t.tile_k)
    sharing = min(COPIED_WORKGROUPS, max(1.0, tiles / d.units))
    step = sharing * 2 * t.tile_m * t.tile_n * t.tile_k / (d.rate * COPIED_SHARE)
    compute_us = waves * (steps * step + COPIED_START_CLOCKS) / d.clocks_per_us
    read = p.batch * steps * t.tile_k * p.size * (p.m * ceil(p.n / t.tile_n) + p.n * ceil(p.m / t.tile_m))
    once = (p.m + p.n) * p.k * p.size * p.batch + p.m * p.n * p.batch * p.size_c * p.results
    memory_us = max(once / (d.bytes_per_us * MEMORY_SHARE), read / (d.units * FILL_BYTES_PER_CLOCK * d.clocks_per_us))
    padded = tiles * t.tile_m * t.tile_n * steps * t.tile_k
    useful = min(1.0, p.m * p.n * p.k * p.batch / padded) if padded > 0 else 1.0
    total_us = both(compute_us, memory_us) + LAUNCH_US
    return Estimate(tiles, waves, compute_us, 0.0, memory_us, total_us, useful)


def estimate(p: Problem, t: Kernel, d: Device, most_us: float) -> Estimate:
    """The time of a launch. It may end early, with a total above ``most_us`` and at most what it would have been."""
    if p.m == 0 or p.n == 0:
        return Estimate()
    if t.copied:
        return copied(p, t, d)
    plain = t.warp_tile_m == ROWS_OF_INSTRUCTION and t.warp_tile_n == t.tile_n
    swapped = not plain and t.warp_tile_m == t.tile_m and t.warp_tile_n == ROWS_OF_INSTRUCTION
    rows = t.tile_n if swapped else t.tile_m
    columns = t.tile_m if swapped else t.tile_n
    bytes_per_us = d.bytes_per_us * MEMORY_SHARE
    tiles_m = ceil(p.m / (t.tile_m * t.cluster_m)) * t.cluster_m
    tiles_n = ceil(p.n / (t.tile_n * t.cluster_n)) * t.cluster_n
    tiles = tiles_m * tiles_n * p.split * p.batch
    waves = max(1.0, tiles / d.units) * STREAM_SLACK if t.stream_k else ceil(tiles / d.units)
    whole_steps = ceil(p.k / t.tile_k)
    steps = ceil(whole_steps / p.split) if p.split > 1 else whole_steps
    running = min(tiles, d.units)

    slices = t.tile_k * p.size * INSTRUCTION_SHARE
    multiply = 2 * ROWS_OF_INSTRUCTION * BYTES_OF_INSTRUCTION * columns / (p.size * d.rate)
    instruction = max(multiply, READ_ROWS_CLOCKS + READ_COLUMN_CLOCKS * columns) * INSTRUCTION_SLACK
    slack = (SWAPPED_SLACK if swapped else 1.0) * (1.0 if t.pingpong else SHARED_SLACK)
    step = slices * rows / ROWS_OF_INSTRUCTION * instruction
    clustered = t.cluster_m * t.cluster_n > 1
    waits = STEP_CLOCKS + (CLUSTER_STEP_CLOCKS if clustered else 0.0)
    us_per_clock = 1 / d.clocks_per_us
    # Each total from here on is at least the one before, even when rounded: the time of multiplying alone, and below
    # the time with operands that are read once, is at most the whole time.
    least_us = (waves * (steps * (step + waits) * slack) + START_CLOCKS) * us_per_clock + LAUNCH_US
    if least_us > most_us:
        return Estimate(tiles, waves, total_us=least_us)

    stage = (t.tile_m + t.tile_n) * t.tile_k * p.size
    stages = max(1.0, floor((d.lds_bytes - EPILOGUE_ELEMENTS * p.size_c) / stage))
    asked_for = (t.tile_m / t.cluster_n + t.tile_n / t.cluster_m) * t.tile_k * p.size
    fetched = asked_for if clustered else stage
    fill = max(fetched * FILL_CLOCKS + stage * RECEIVE_CLOCKS, LATENCY_CLOCKS / max(1.0, stages - 1))
    cut = p.split > 1 or t.stream_k
    shown = HIDDEN_STORE if t.pingpong and waves > 1 else 1.0
    store = t.tile_m * t.tile_n * p.size_c * STORE_CLOCKS * shown * (2.0 if cut else 1.0)
    more = min(step, fill) if stages < 3 else 0.0  # two stages: nothing arrives while they are multiplied
    compute_us = (waves * (steps * (step + more + waits) * slack + store) + START_CLOCKS) * us_per_clock
    fill_us = (waves * (steps * (fill + more + waits) * slack + store) + START_CLOCKS) * us_per_clock
    inside = max(compute_us, fill_us)
    sharing = (CUT_US if cut else CUTTABLE_US if t.cuttable else 0.0) + (ANY_US if t.any_epilogue else 0.0)
    added = (p.split - 1) * (SLICE_US + t.tile_m * t.tile_n * SLICE_ELEMENT_US)
    once = (p.m + p.n) * p.k * p.size * p.batch
    results = p.m * p.n * p.batch * p.size_c * p.results
    read_once_us = both(inside, (once + results) / bytes_per_us) + LAUNCH_US + sharing + added
    if read_once_us > most_us:
        return Estimate(tiles, waves, compute_us, fill_us, total_us=read_once_us)

    side = max(1.0, running / p.split if p.split > 1 else running)
    panels = shared_panels(t.tile_m, t.tile_n, min(side, tiles_m * tiles_n), tiles_m, tiles_n)
    again = p.batch * tiles_m * tiles_n / side * p.k * p.size * panels
    in_flight = running * stages * stage
    wanted = IN_FLIGHT_BYTES * d.units
    reached = in_flight / wanted if in_flight < wanted else 1.0
    memory_us = (once + REREAD_SHARE * max(0.0, again - once) + results) / (bytes_per_us * reached)
    padded = tiles * t.tile_m * t.tile_n * steps * t.tile_k
    useful = min(1.0, p.m * p.n * p.k * p.batch / padded) if padded > 0 else 1.0
    total_us = both(inside, memory_us) + LAUNCH_US + sharing + added
    return Estimate(tiles, waves, compute_us, fill_us, memory_us, total_us, useful)
