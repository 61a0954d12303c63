"""Predicted time of attention kernels: tiles of scores and sums on every backend, and stages that only move memory.

A forward kernel cuts queries into tiles (of all heads that share K and V where it packs heads), and keys into splits of
whole tiles. Its blocks run in waves; each multiplies its queries by the keys that the mask lets through and reads its K
and V, while memory moves all of Q, K, V and O once: the launch takes the longest of the three, on a CPU the sum of
arithmetic and memory. Few blocks are therefore slow however short their rows are, which splits avoid: they pass through
memory twice as fp32 and cost a second launch. Only constants marked as fitted were fitted to measured times.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor

FILL_BYTES_PER_CLOCK = 48.0  # as in GEMM's formula
SECOND_LAUNCH_US = 4.0  # likewise
# NVIDIA GPUs: fitted to benchmarks/results/h200_attention_tuning_all_bf16_20261122.csv.gz by
# benchmarks/selection/fit_estimates.py; what distinguishes wgmma kernels, to measurements of their tiles.
SPARE_MASK = 1.05  # factor of a kernel for more masks than the problem needs
STREAMED = 1.0  # share of the memory's bandwidth when all units read
# Clocks of a key, and bytes of K and V in another one: for a lone block, and for blocks that share a compute unit.
ALONE_CLOCKS = 18.48
ALONE_BYTES = 35.31
SHARED_CLOCKS = 3.676
SHARED_BYTES = 32.42
# wgmma kernels: the work of a query and a key is so many products at the peak rate; the rest is softmax, of which three
# groups of warps hide more than two. Each tile has first scores and last products that nothing overlaps.
PRODUCT_SHARE = 1.12
SOFTMAX_WORK = 110.0
SOFTMAX_WORK_OF_THREE = 87.0
TILE_US = 2.0
TILES_LAUNCH_US = 7.064  # for a launch of a wgmma kernel
LAUNCH_US = 0.9966  # for a part
WAVE_US = 2.786  # for each wave of its blocks
COMBINE_US = 2.986  # for the second stage
COMBINE_SPLIT_US = 0.08997  # for each split in it
# Threads of a CPU: bytes of memory, the wait for the last of the others (a share of a task), rows that take as long as
# fewer, and clocks of a value that a split leaves.
THREAD_BYTES_PER_US = 12000.0
LAST_TASK = 0.5
FEW_ROWS = 4.0
PARTIAL_CLOCKS = 10.0
# Between kernels of equal predicted time, a lower rank decides.
RANK = 1e-9
# Number of rows and tiles that means are taken over.
SAMPLES = 16.0


class Problem(NamedTuple):
    """A typical request of a problem, or of one of its stages."""

    requests: float
    heads_q: float
    heads_kv: float
    queries: float
    keys: float
    hdim_q: float
    hdim_v: float
    size_q: float  # bytes of an element of Q
    size_kv: float
    size_o: float
    masked: bool
    bottom_right: bool
    window_left: float  # below 0: no bound
    window_right: float
    ragged: bool  # requests have lengths of their own
    splits: float  # parts of the keys, at least 1
    leaves_splits: bool
    dq_slices: float


class Kernel(NamedTuple):
    """Traits of a kernel that the formulas read."""

    cpu: bool
    nvidia: bool
    tile_m: float  # queries
    tile_n: float  # keys
    hdim_q: float
    hdim_v: float
    blocks_per_cu: float  # at least 1
    packs_heads: bool
    spare_mask: bool  # it serves more masks than the problem needs
    work: float  # gradients: time of their products, as a share of one pass over the scores
    selection_rank: float


def bandwidth(k: Kernel, d: Device) -> float:
    """Bytes per microsecond; a thread of a CPU reaches a share of what all cores do."""
    return min(d.bytes_per_us, THREAD_BYTES_PER_US * d.units) if k.cpu else d.bytes_per_us


def visible_part(p: Problem) -> float:
    """The part of queries x keys that the mask lets through, as the mean over some rows."""
    if not p.masked or p.keys <= 0 or p.queries <= 0:
        return 1.0
    seen = 0.0
    i = 0.0
    while i < SAMPLES:
        place = p.queries * (i + 0.5) / SAMPLES + (p.keys - p.queries if p.bottom_right else 0.0)
        first = 0.0 if p.window_left < 0 else max(0.0, place - p.window_left)
        last = p.keys if p.window_right < 0 else place + 1.0 + p.window_right
        seen += max(0.0, min(last, p.keys) - first)
        i += 1.0
    return max(seen / (SAMPLES * p.keys), 1.0 / p.keys)


def keys_of_tile(p: Problem, tile_m: float, tile_n: float) -> float:
    """Keys that a tile of queries reads, in whole tiles of keys, as the mean over some tiles."""
    if not p.masked or p.keys <= 0 or p.queries <= 0:
        return ceil(p.keys / tile_n) * tile_n
    tiles = ceil(p.queries / tile_m)
    some = min(tiles, SAMPLES)
    read = 0.0
    i = 0.0
    while i < some:
        place = floor(tiles * (i + 0.5) / some) * tile_m + (p.keys - p.queries if p.bottom_right else 0.0)
        first = 0.0 if p.window_left < 0 else max(0.0, place - p.window_left)
        last = p.keys if p.window_right < 0 else max(0.0, place + tile_m + p.window_right)
        read += max(0.0, ceil(min(last, p.keys) / tile_n) - floor(first / tile_n))
        i += 1.0
    return max(read / some, 1.0) * tile_n


def row_bytes(p: Problem) -> float:
    """Bytes of Q and O."""
    return p.requests * p.queries * p.heads_q * (p.hdim_q * p.size_q + p.hdim_v * p.size_o)


def key_bytes(p: Problem) -> float:
    """Bytes of K and V of one head."""
    return p.keys * (p.hdim_q + p.hdim_v) * p.size_kv


def tiles_of(p: Problem, k: Kernel) -> float:
    """Blocks of a kernel without splits."""
    shared = p.heads_q / p.heads_kv if k.packs_heads else 1.0
    return ceil(p.queries * shared / k.tile_m) * p.heads_q / shared * p.requests


def splits_that_fill(p: Problem, k: Kernel, d: Device) -> float:
    """The most splits whose blocks all run at once; 0 if there are more blocks even without splits."""
    tiles = tiles_of(p, k)
    return floor(d.units * k.blocks_per_cu / tiles) if tiles > 0 else 0.0


def wave_us(count: float, d: Device, keys: float, size: float, readers: float) -> float:
    """The time of a wave: the longest of one block, of the blocks that share a unit, and of memory for all of them."""
    alone = ALONE_CLOCKS + size / ALONE_BYTES
    shared = SHARED_CLOCKS + size / SHARED_BYTES
    clocks = keys * max(alone, ceil(count / d.units) * shared)
    return WAVE_US + max(clocks / d.clocks_per_us, count * keys * size / readers / (STREAMED * d.bytes_per_us))


def streaming_us(blocks: float, k: Kernel, d: Device, keys: float, size: float, readers: float) -> float:
    """The time of blocks that each read their own keys of ``size`` bytes each; ``readers`` blocks share them."""
    resident = d.units * k.blocks_per_cu
    full = floor(blocks / resident)
    rest = blocks - full * resident
    last = wave_us(rest, d, keys, size, readers) if rest > 0 else 0.0
    return full * wave_us(resident, d, keys, size, readers) + last


def settled(k: Kernel, compute: float, fill: float, memory: float) -> float:
    """The time of a launch that overlaps as much as it can."""
    return (compute + memory if k.cpu else max(compute, fill, memory)) * (1.0 + RANK * k.selection_rank)


def rows_of(p: Problem, k: Kernel) -> float:
    """Rows of a block. CPU blocks stack the heads that share K and V, and a few rows take as long as some more."""
    return min(k.tile_m, max(FEW_ROWS, p.queries * p.heads_q / p.heads_kv)) if k.cpu else k.tile_m


def rounds_of(p: Problem, k: Kernel, d: Device, tiles: float) -> float:
    """Tiles that the busiest unit computes, one after another."""
    units = d.units * k.blocks_per_cu
    if k.cpu:
        return max(1.0, tiles / units + LAST_TASK * (1.0 - 1.0 / units))
    # Masks or lengths make tiles of wgmma kernels unequal; units then take them one by one.
    unequal = k.nvidia and not k.packs_heads and (p.masked or p.ragged)
    return max(1.0, tiles / units) if unequal else ceil(tiles / units)


def fill_us(p: Problem, k: Kernel, d: Device, tiles: float, keys: float, hdims: float) -> float:
    """The time in which K and V reach shared memory."""
    if k.cpu:
        return 0.0
    if k.nvidia and k.packs_heads:
        readers = tiles_of(p, k) / (p.requests * p.heads_kv)
        return streaming_us(tiles, k, d, keys, hdims * p.size_kv, readers)
    waves = ceil(tiles / (d.units * k.blocks_per_cu))
    return waves * k.blocks_per_cu * keys * hdims * p.size_kv / FILL_BYTES_PER_CLOCK / d.clocks_per_us


def launches_us(p: Problem, k: Kernel) -> float:
    """The cost of the launch, and of the second stage if splits are left."""
    if k.nvidia and k.packs_heads:
        return LAUNCH_US + (COMBINE_US + COMBINE_SPLIT_US * p.splits if p.leaves_splits else 0.0)
    return (TILES_LAUNCH_US if k.nvidia else 0.0) + (SECOND_LAUNCH_US if p.leaves_splits else 0.0)


def part(p: Problem, k: Kernel, d: Device) -> Estimate:
    """The time of a forward kernel."""
    wgmma = k.nvidia and not k.packs_heads
    seen = visible_part(p)
    read = keys_of_tile(p, k.tile_m, k.tile_n) if wgmma else p.keys * seen
    keys = ceil(read / p.splits / k.tile_n) * k.tile_n
    hdims = p.hdim_q + p.hdim_v if k.cpu else max(k.hdim_q, p.hdim_q) + max(k.hdim_v, p.hdim_v)
    tiles = tiles_of(p, k) * p.splits
    rows = rows_of(p, k)
    softmax = SOFTMAX_WORK_OF_THREE if k.tile_m > 128 else SOFTMAX_WORK
    work = PRODUCT_SHARE * hdims + softmax if wgmma else hdims
    tile_us = k.blocks_per_cu * 2.0 * rows * keys * work / d.rate / d.clocks_per_us + (TILE_US if wgmma else 0.0)
    compute = rounds_of(p, k, d, tiles) * tile_us * (SPARE_MASK if k.spare_mask else 1.0)
    fill = fill_us(p, k, d, tiles, keys, hdims)
    partial = 4.0 * p.splits * p.requests * p.queries * p.heads_q * (p.hdim_v + 1.0) if p.leaves_splits else 0.0
    moved_bytes = row_bytes(p) + p.requests * p.heads_kv * key_bytes(p) + 2.0 * partial
    written = partial / 4.0 * PARTIAL_CLOCKS / d.units / d.clocks_per_us if k.cpu else 0.0
    memory = moved_bytes / bandwidth(k, d) + written
    asked = p.requests * p.heads_q * p.queries * p.keys * seen * (p.hdim_q + p.hdim_v)
    done = tiles * rows * keys * hdims
    return Estimate(
        tiles=tiles, waves=ceil(tiles / (d.units * k.blocks_per_cu)), compute_us=compute, fill_us=fill,
        memory_us=memory, total_us=settled(k, compute, fill, memory) + launches_us(p, k),
        useful=asked / done if done > asked else 1.0,
    )  # fmt: skip


def gradients(p: Problem, k: Kernel, d: Device) -> Estimate:
    """The time of dK, dV, and dQ or its partial sums."""
    tile_m = max(k.tile_m, 1.0)
    tile_n = max(k.tile_n, 1.0)
    queries = ceil(p.queries * visible_part(p) / tile_m) * tile_m
    hdims = k.work * (3.0 * max(k.hdim_q, p.hdim_q) + 2.0 * max(k.hdim_v, p.hdim_v))
    tiles = ceil(p.keys / tile_n) * p.heads_q * p.requests
    waves = ceil(tiles / (d.units * k.blocks_per_cu))
    work = k.blocks_per_cu * 2.0 * tile_n * queries * hdims
    compute = waves * work / d.rate / d.clocks_per_us * (SPARE_MASK if k.spare_mask else 1.0)
    sums = 8.0 * p.dq_slices * p.requests * p.queries * p.heads_q * p.hdim_q
    moved_bytes = 2.0 * row_bytes(p) + 2.0 * p.requests * p.heads_kv * key_bytes(p) + sums
    memory = moved_bytes / d.bytes_per_us
    launch = SECOND_LAUNCH_US if p.dq_slices > 0 else 0.0
    total = settled(k, compute, 0.0, memory) + launch
    return Estimate(tiles=tiles, waves=waves, compute_us=compute, memory_us=memory, total_us=total)


def moved(count: float, k: Kernel, d: Device) -> Estimate:
    """The time of a kernel that only moves ``count`` bytes."""
    memory = count / bandwidth(k, d)
    return Estimate(memory_us=memory, total_us=memory * (1.0 + RANK * k.selection_rank))


def output_q(p: Problem) -> float:
    """Elements of Q of all requests."""
    return p.requests * p.queries * p.heads_q * p.hdim_q


def output_v(p: Problem) -> float:
    """Elements of O of all requests."""
    return p.requests * p.queries * p.heads_q * p.hdim_v


def dot(p: Problem, k: Kernel, d: Device) -> Estimate:
    """The time to compute D from O and dO."""
    return moved(2.0 * output_v(p) * p.size_o, k, d)


def combine(p: Problem, k: Kernel, d: Device) -> Estimate:
    """The time to combine O from its splits."""
    return moved(4.0 * p.splits * output_v(p) + output_v(p) * p.size_o, k, d)


def convert(p: Problem, k: Kernel, d: Device) -> Estimate:
    """The time to convert dQ from its partial sums."""
    return moved(4.0 * p.dq_slices * output_q(p) + output_q(p) * p.size_q, k, d)


def append(rows: float, size: float, k: Kernel, d: Device) -> Estimate:
    """The time to read and write new rows of a cache and rotated queries: ``rows`` elements of ``size`` bytes."""
    return moved(2.0 * rows * size, k, d)
