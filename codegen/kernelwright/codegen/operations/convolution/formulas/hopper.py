"""Predicted time of a convolution on Hopper.

A tile takes its steps, each as long as its multiplications or its copies to shared memory, and its store, which
pingpong hides behind the next tile. Waves of tiles run one after another. Depthwise kernels multiply outputs * filter
points in fp32. The time is the longer of computing and memory plus a share of the shorter one, a launch, and the
kernels before and after it that copy operands or add up slices.

Kernels have the instructions and the ring of stages of GEMM; the numbers are fitted to tuning problems on an H200 by
``benchmarks/selection/fit_estimates.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor
from kernelwright.codegen.operations.convolution.formulas.problem import (
    Problem,
    filter_points,
    out_points,
    strides,
    work,
)

STEP = 64  # channels, or points of a sum, that a step multiplies
READ_ROWS_CLOCKS = 14.38
READ_COLUMN_CLOCKS = 0.25
INSTRUCTION_SLACK = 0.9381
FILL_BYTES_PER_CLOCK = 61.22
STEP_CLOCKS = 61.43
# The bytes that products read from shared memory decide between otherwise equal tiles, such as 64x128 and 128x64.
READ_ROW_BYTES = 32
SHARED_BYTES_PER_CLOCK = 128
READ_SHARE = 0.1
STORE_BYTES_PER_CLOCK = 15.69
START_CLOCKS = 725.5
MEMORY_SHARE = 0.8475
OVERLAP = 0.27
LAUNCH_US = 1.287
HELPER_US = 2.0  # for a further kernel that copies operands or adds up slices
# Backward weight: for each slice that is added up, for a step, and for a tile's store, as shares of other directions'.
SLICE_US = 0.02797
WEIGHT_STEP_CLOCKS = 0.9123
WEIGHT_STORE = 0.6013
DIRECT_PRODUCTS = 64  # of a depthwise kernel per clock and multiprocessor: 128 lanes, which also read and convert
DIRECT_ROWS = 8  # outputs of a box
DIRECT_COLUMNS = 14
# Depthwise backward weight: a workgroup, a box of outputs, each filter point of it; the wait of workgroups of a wave
# for each other; each slice that is added up, whose sums are in L2.
DIRECT_START_CLOCKS = 92.6
BOX_CLOCKS = 695.2
BOX_POINT_CLOCKS = 122.4
DIRECT_WAVES = 0.8061
DIRECT_LAUNCH_US = 0.5645
DIRECT_SLICE_US = 0.0127
DIRECT_SLICE_BYTES_PER_US = 8e6
SUM_BYTES = 4
VECTOR_ELEMENTS = 8  # TMA addresses lines by multiples of 16 bytes


class Kernel(NamedTuple):
    """Traits of a kernel that the time depends on."""

    tile_m: float
    tile_n: float
    wave_m: float
    depthwise: bool


class Shape(NamedTuple):
    """The implicit GEMM as launchers/cuda/convolution builds it: few channels are folded and groups are merged."""

    rows: float
    columns: float
    steps: float
    groups: float
    merged: float  # groups that a tile multiplies at once
    moved: float  # bytes
    slice_bytes: float


def merged_groups(groups: float, c: float, k: float) -> float:
    """Groups of ``c`` and ``k`` channels that a tile multiplies at once: as many as divide them and fit in a step."""
    merged = floor(STEP / max(c, k))
    while merged > 1 and floor(groups / merged) * merged < groups:
        merged -= 1
    return max(merged, 1.0)


def shape_of(p: Problem) -> Shape:
    """The implicit GEMM of a problem."""
    folded = p.fold_pitch > 0
    channels = p.fold_pitch * p.filter_w if folded else p.c
    taps = filter_points(p) / (p.filter_w if folded else 1.0)
    merged = merged_groups(p.groups, channels / p.groups, p.k / p.groups)
    groups = p.groups / merged
    c = channels / p.groups * merged
    k = p.k / p.groups * merged
    outputs = p.n * out_points(p)
    inputs = p.n * p.in_d * p.in_h * (p.out_w if folded else p.in_w)
    moved = p.size * (inputs * channels + outputs * p.k * (2.0 if p.residual else 1.0) + p.k * c * taps)
    if p.backward_data:
        # Each residue of the strides has its share of the filter.
        residues = strides(p) / (p.stride_w if folded else 1.0)
        return Shape(inputs, c, max(1.0, taps / residues) * ceil(k / STEP), groups, merged, moved, 0.0)
    if p.backward_weight:
        steps = ceil(ceil(outputs / STEP) / p.split)
        return Shape(k, taps * ceil(c / STEP) * STEP, steps, groups, merged, moved, SUM_BYTES * p.k * taps * c)
    return Shape(outputs, k, taps * ceil(c / STEP), groups, merged, moved, 0.0)


def step_clocks(t: Kernel, size: float) -> float:
    """Clocks of one step of a tile."""
    instructions = STEP / 16 * t.tile_m / 64
    multiply = instructions * max(t.tile_n / 2, READ_ROWS_CLOCKS + READ_COLUMN_CLOCKS * t.tile_n) / INSTRUCTION_SLACK
    reads = instructions * (64 + t.tile_n) * READ_ROW_BYTES / SHARED_BYTES_PER_CLOCK
    fill = (t.tile_m + t.tile_n) * STEP * size / FILL_BYTES_PER_CLOCK
    return max(multiply, fill) + STEP_CLOCKS + READ_SHARE * reads


def helper_us(p: Problem, s: Shape, bandwidth: float) -> float:
    """The time of copies that operands need before TMA can read them, and of adding up slices afterwards."""
    us = 0.0
    copied = p.fold_pitch > 0 or floor(p.c / VECTOR_ELEMENTS) * VECTOR_ELEMENTS < p.c
    if not p.backward_weight and (s.merged > 1 or copied):
        us += HELPER_US
    if copied:
        us += HELPER_US + s.moved / bandwidth
    if p.backward_weight and (s.merged > 1 or p.split > 1):
        us += HELPER_US + SLICE_US * p.split + 2 * s.slice_bytes * p.split / bandwidth
    return us


def direct(p: Problem, s: Shape, d: Device, bandwidth: float) -> Estimate:
    """The time of a depthwise kernel."""
    taps = filter_points(p)
    products = p.n * out_points(p) * p.k * taps
    memory_us = s.moved / bandwidth
    if not p.backward_weight:
        compute_us = products / DIRECT_PRODUCTS / d.units / d.clocks_per_us
        return Estimate(1.0, 1.0, compute_us, 0.0, memory_us, max(compute_us, memory_us) + LAUNCH_US)
    # A workgroup has the boxes of a slice and of 64 channels. Workgroups on one multiprocessor share its arithmetic.
    boxes = p.n * ceil(p.out_h / DIRECT_ROWS) * ceil(p.out_w / DIRECT_COLUMNS)
    full = p.n * p.out_h * p.out_w / (boxes * DIRECT_ROWS * DIRECT_COLUMNS)
    box_clocks = full * (BOX_CLOCKS + BOX_POINT_CLOCKS * taps)
    tiles = ceil(p.c / STEP) * p.split
    waves = DIRECT_WAVES * ceil(tiles / d.units) + (1 - DIRECT_WAVES) * max(1.0, tiles / d.units)
    summed_us = waves * (DIRECT_START_CLOCKS + ceil(boxes / p.split) * box_clocks) / d.clocks_per_us
    added = 2 * SUM_BYTES * p.c * taps * p.split / DIRECT_SLICE_BYTES_PER_US
    launches = LAUNCH_US + HELPER_US + DIRECT_LAUNCH_US + DIRECT_SLICE_US * p.split
    return Estimate(tiles, waves, summed_us, 0.0, memory_us, max(summed_us, memory_us) + launches + added)


def estimate(p: Problem, t: Kernel, d: Device) -> Estimate:
    """The time of a launch."""
    bandwidth = d.bytes_per_us * MEMORY_SHARE
    s = shape_of(p)
    if t.depthwise:
        return direct(p, s, d, bandwidth)
    stored = SUM_BYTES if p.backward_weight else p.size
    tiles = ceil(s.rows / t.tile_m) * ceil(s.columns / t.tile_n) * s.groups * p.split
    waves = ceil(tiles / d.units)
    multiply = s.steps * (step_clocks(t, p.size) * (WEIGHT_STEP_CLOCKS if p.backward_weight else 1.0))
    share = WEIGHT_STORE if p.backward_weight else 1.0
    store = share * t.tile_m * t.tile_n * stored / STORE_BYTES_PER_CLOCK / t.wave_m
    # Pingpong stores one tile while it multiplies the next; the last store counts for both.
    pingpong = t.wave_m == 1
    each = max(multiply, (multiply + store) / 2) if pingpong else multiply + store
    compute_us = (START_CLOCKS + waves * each + (store if pingpong else 0.0)) / d.clocks_per_us
    filled = (t.tile_m + t.tile_n) * STEP * p.size / FILL_BYTES_PER_CLOCK
    fill_us = waves * s.steps * filled / d.clocks_per_us
    memory_us = s.moved / bandwidth
    padded = tiles * s.steps * t.tile_m * t.tile_n * STEP
    asked = work(p)
    useful = asked / padded if padded > asked else 1.0
    both = max(compute_us, memory_us) + OVERLAP * min(compute_us, memory_us)
    return Estimate(tiles, waves, compute_us, fill_us, memory_us, both + LAUNCH_US + helper_us(p, s, bandwidth), useful)
