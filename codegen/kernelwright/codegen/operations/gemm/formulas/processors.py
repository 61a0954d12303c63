"""Predicted time of a GEMM on a CPU: that of the busiest thread, in clocks.

Register blocks of r rows and v vectors, smaller at edges, take max(r v / 2, (r + v) / 2, latency) clocks and a share
for each row per step along k: two multiply-add units whose sums wait for each other, and two loads per clock (Low,
Igual, Smith, Quintana-Orti, "Analytical Modeling Is Enough for High-Performance BLIS", ACM TOMS 43(2), 2016, section
4.2). Packing does not overlap with multiplying, so it is added, per vector; so are reading panels that other threads
packed, passing sums from one cache block along k to the next, adding up slices, and waiting for the other threads after
each stage. Problems of few rows or columns read their matrix in place: all kernels handle them alike.

Problems are cut as in the launcher's plan.hpp. The numbers are fitted to tuning problems: with four threads of a
fifth-generation Xeon (``benchmarks/results/cpu_sweep_20261123/gemm-tuning-*``) and two of an EPYC 9555
(``cpu_gemm_tuning_*_20261122.csv.gz``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor
from kernelwright.codegen.formulas.products import Product

# Clocks.
LATENCY_CLOCKS = 4.9  # least clocks of a register block's step: sums wait for each other
ROW_CLOCKS = 0.05  # for each of its rows, besides multiplying
SLOW_DOT = 3.7  # slowdown of a bf16 dot product relative to multiplying and adding, where it is slow
BLOCK_CLOCKS = 215  # for a register block in each cache block along K
OWN_VECTOR_CLOCKS = 4.2  # to pack a vector of B for the own thread,
SHARED_VECTOR_CLOCKS = 5.9  # and for all threads
VECTOR_OF_A_CLOCKS = 30  # to pack a vector of A
FAR_VECTOR_CLOCKS = 13.7  # to read a vector of B that other threads packed
PARTIAL_CLOCKS = 5.2  # for a sum that waits for the next cache block along K
ADD_CLOCKS = 2.8  # for a sum of each slice
MEET_CLOCKS = 10400  # until all threads have finished a stage
# Set by hand, not fitted: between otherwise equal kernels, the one whose epilogue is compiled in.
ANY_EPILOGUE = 1.01
# Set by hand, not fitted: AMX, where a product of two tiles takes 16 clocks (Intel 64 and IA-32 Architectures
# Optimization Reference Manual, chapter 20) and loads keep up with four fifths of that.
TILE_CLOCKS = 20.0
TILE_UNITS = 16.0  # rows of a tile, and units of 4 bytes in each
TILE_VALUES = 32.0  # along k in a row of a tile of bf16: the fewest that one instruction of AMX takes
TILE_VECTOR_OF_A_CLOCKS = 6.0  # to copy a vector of A
READ_BYTE_CLOCKS = 0.1  # for a matrix that is read in place
# As in the launcher.
MULTIPLICATIONS_PER_THREAD = 1048576
TASKS_PER_THREAD = 4
PARTIAL_UNITS = 16777216
FEW_VECTORS = 4
STREAM_DEPTH = 64
STREAM_PARTS = 64
DIRECT_EXTENT = 128
DIRECT_WORK = 884736


class Kernel(NamedTuple):
    """Traits that the time depends on. Rows and columns are those of a register block; ``unit`` is its step along k."""

    rows: float
    columns: float
    unit: float
    tile_m: float
    tile_n: float
    tile_k: float
    slow_dots: bool  # multiplies by bf16 dot products, which are slow on this processor
    fp32: bool  # operands are fp32
    stream_k: bool
    persistent: bool
    any_epilogue: bool  # reads its epilogue from the problem


@dataclass(frozen=True)
class Problem(Product):
    """A product, its element types, and the order of B."""

    size: float  # bytes of an element of A
    fp32_results: bool
    shuffled: bool  # B is packed already


class Shape(NamedTuple):
    """A product as a kernel sees it."""

    m: float
    n: float
    k: float
    lanes: float
    units: float  # steps along k
    packed: float  # units of 4 bytes along k
    blocks_k: float
    dot: float
    vector_of_a: float  # clocks to pack one
    threads: float
    partial: bool  # sums wait in memory of their own
    tiles: bool  # multiplies tiles of AMX


class Clocks(NamedTuple):
    """Clocks of the busiest thread."""

    multiply: float
    move: float


def threads_of(multiplications: float, units: float) -> float:
    """Number of threads that a launch starts."""
    useful = multiplications / MULTIPLICATIONS_PER_THREAD
    return 1.0 if useful < 2 else min(floor(useful), units)


def block_clocks(rows: float, vectors: float, s: Shape) -> float:
    """Clocks of a register block of ``rows`` rows and ``vectors`` vectors over all of k."""
    if rows <= 0 or vectors <= 0:
        return 0.0
    step = max(rows * vectors / 2 * s.dot, (rows + vectors) / 2, LATENCY_CLOCKS) + ROW_CLOCKS * rows
    if s.tiles:
        step = ceil(rows / TILE_UNITS) * vectors * TILE_CLOCKS
    return s.units * step + s.blocks_k * BLOCK_CLOCKS


def product_clocks(rows: float, columns: float, s: Shape, t: Kernel) -> float:
    """Clocks of all register blocks of ``rows`` rows and ``columns`` columns; those at edges are smaller."""
    whole_m = floor(rows / t.rows)
    whole_n = floor(columns / t.columns)
    rest_m = rows - whole_m * t.rows
    rest_n = ceil((columns - whole_n * t.columns) / s.lanes)
    vectors = t.columns / s.lanes
    whole = whole_n * (whole_m * block_clocks(t.rows, vectors, s) + block_clocks(rest_m, vectors, s))
    return whole + whole_m * block_clocks(t.rows, rest_n, s) + block_clocks(rest_m, rest_n, s)


def packed(s: Shape, t: Kernel, p: Problem) -> Clocks:
    """Clocks of kernels that pack blocks of A and B, one of them for all threads."""
    short_m = s.m <= t.tile_m
    wanted_n = 1.0 if short_m and (s.tiles or not s.partial) else ceil(s.n / t.tile_n)
    block_n = ceil(ceil(s.n / wanted_n) / t.columns) * t.columns
    count_n = ceil(s.n / block_n)
    super_m = ceil(s.m / t.rows) * t.rows
    if s.partial:
        super_m = min(super_m, max(t.tile_m, floor(floor(PARTIAL_UNITS / block_n) / t.tile_m) * t.tile_m))
    count_m = ceil(s.m / super_m)
    panels = block_n / t.columns if short_m else super_m / t.rows
    spread = TASKS_PER_THREAD * s.threads if s.threads > 1 else 1.0
    per_tile = max(1.0, floor(t.tile_m / t.rows))
    tasks = min(panels, spread if short_m else ceil(ceil(panels / per_tile) / s.threads) * s.threads)
    busiest = min(1.0, ceil(tasks / s.threads) * ceil(panels / tasks) / panels)
    share = max(busiest, 1 / s.threads)
    vectors_a = s.m * s.packed / s.lanes
    vectors_b = 0.0 if p.shuffled else s.n * s.packed / s.lanes
    multiply = product_clocks(s.m, s.n, s, t) * share
    move = s.m * s.n * (s.blocks_k - 1) * PARTIAL_CLOCKS / s.threads
    if short_m:
        move += vectors_a * s.vector_of_a / min(s.threads, ceil(s.m / t.rows)) * count_n
        move += vectors_b * OWN_VECTOR_CLOCKS * share
    else:
        move += vectors_a * s.vector_of_a / s.threads * count_n
        move += vectors_b * (SHARED_VECTOR_CLOCKS * count_m / s.threads + FAR_VECTOR_CLOCKS)
    if s.threads > 1:
        move += count_m * count_n * s.blocks_k * MEET_CLOCKS
    return Clocks(multiply, move)


def tiles(s: Shape, t: Kernel, slices: float) -> Clocks:
    """Clocks of persistent, split-K and stream-K kernels: workers take tiles, or parts, and pack for themselves."""
    tile_m = min(t.tile_m, ceil(s.m / t.rows) * t.rows)
    tile_n = min(t.tile_n, ceil(s.n / t.columns) * t.columns)
    along_m = ceil(s.m / tile_m)
    count = along_m * ceil(s.n / tile_n)
    whole = not t.stream_k and slices <= 1
    each = product_clocks(s.m, s.n, s, t) / count
    busiest = ceil(count * slices / s.threads) / slices
    if t.stream_k:
        busiest = max(count / s.threads, 1 / min(STREAM_PARTS, ceil(s.k / STREAM_DEPTH)))
    if whole:
        busiest = ceil(count / min(count, s.threads))
        each = product_clocks(tile_m, tile_n, s, t)
    vectors_b = tile_n * s.packed / s.lanes
    if s.blocks_k <= 1 and along_m > 1:
        vectors_b /= min(along_m, max(busiest, 1.0))  # reused by the tiles that follow
    move = busiest * (tile_m * s.packed / s.lanes * s.vector_of_a + vectors_b * SHARED_VECTOR_CLOCKS)
    move += s.m * s.n * (s.blocks_k - 1) * PARTIAL_CLOCKS / s.threads
    if not whole:
        move += s.m * s.n * (2.0 if t.stream_k else slices) * ADD_CLOCKS / s.threads
    if s.threads > 1:
        move += MEET_CLOCKS
    return Clocks(busiest * each, move)


def clocks_of(s: Shape, t: Kernel, p: Problem) -> Clocks:
    """Clocks of one product."""
    if t.stream_k or t.persistent or p.split > 1:
        return tiles(s, t, p.split)
    if not p.shuffled and min(s.m, s.n) <= FEW_VECTORS:
        read = max(s.m, s.n) * s.k * p.size * READ_BYTE_CLOCKS
        return Clocks(s.m * s.n * s.k / s.lanes / 2 / s.threads, read / s.threads)
    direct = max(s.m, s.n, s.k) <= DIRECT_EXTENT and s.m * s.n * s.k <= DIRECT_WORK
    if not p.shuffled and t.fp32 and direct:
        return Clocks(product_clocks(s.m, s.n, s, t), 0.0)
    return packed(s, t, p)


def estimate(p: Problem, t: Kernel, d: Device) -> Estimate:
    """The time of a launch. Products of a batch run concurrently, one thread each, or one after another."""
    if p.m == 0 or p.n == 0:
        return Estimate()
    k = max(p.k, 1.0)
    work = p.m * p.n * k
    alone = threads_of(work, d.units)
    together = threads_of(work * p.batch, d.units)
    beside = p.batch > 1 and (alone == 1 or p.batch >= d.units)
    threads = 1.0 if beside else alone
    blocks_k = ceil(k / t.tile_k)
    partial = blocks_k > 1 and not p.fp32_results
    lanes = max(1.0, d.rate_fp32 / 4)
    dot = SLOW_DOT if t.slow_dots else 1.0
    units = ceil(k / t.unit)
    by_tiles = t.unit >= TILE_VALUES
    of_a = TILE_VECTOR_OF_A_CLOCKS if by_tiles else VECTOR_OF_A_CLOCKS
    packed_units = units * TILE_UNITS if by_tiles else units
    s = Shape(p.m, p.n, k, lanes, units, packed_units, blocks_k, dot, of_a, threads, partial, by_tiles)
    rounds = ceil(p.batch / together) if beside else p.batch
    c = clocks_of(s, t, p)
    blocks = ceil(p.m / t.rows) * ceil(p.n / t.columns)
    tiles_of_all = blocks * p.split * p.batch
    epilogue = ANY_EPILOGUE if t.any_epilogue else 1.0
    compute_us = rounds * c.multiply / d.clocks_per_us * epilogue
    memory_us = rounds * c.move / d.clocks_per_us
    useful = p.m * p.n / (blocks * t.rows * t.columns)
    return Estimate(
        tiles_of_all, ceil(tiles_of_all / threads), compute_us, 0.0, memory_us, compute_us + memory_us, useful
    )
