"""Predicted time of a convolution on a CPU: that of the busiest thread, plus memory.

Work is cut as the launchers' plans (launchers/cpu/convolution) cut it: into register blocks, smaller at edges, shared
by as many threads as the problem keeps busy. In forward and backward data, rows of a block are outputs of a line and
columns are channels; a block whose vectors are written to more lines than can be in flight waits for them, and every
box of outputs reads all weights. In backward weight both are channels, and each step is an output. Packing does not
overlap, so times add up.

The numbers are fitted to tuning problems (``benchmarks/results/cpu_sweep_20261123/conv-tuning-*``, four threads of a
fifth-generation Xeon); on an EPYC 9555 they choose equally well.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor
from kernelwright.codegen.operations.convolution.formulas.problem import (
    Problem,
    filter_points,
    gemm,
    in_points,
    moved_bytes,
    out_points,
    strides,
    work,
)
from kernelwright.codegen.operations.convolution.formulas.tiles import spare

# Clocks: the least of a register block's step, and those of each of its vectors besides multiplying; more in backward
# weight, which reads both operands from the second-level cache.
LATENCY_CLOCKS = 4.3
VECTOR_CLOCKS = 0.18
WEIGHT_LATENCY_CLOCKS = 10
WEIGHT_VECTOR_CLOCKS = 0.75
SLOW_DOT = 3.7  # slowdown of a bf16 dot product relative to multiplying and adding, where it is slow
# Writing a register block: lines of the output that may be in flight to the first-level cache.
LINES_ON_THEIR_WAY = 16
LINE_CLOCKS = 17
# Set by hand, not fitted: between otherwise equal kernels, the one whose epilogue is compiled in.
ANY_EPILOGUE = 1.01
# For an output: for itself, and for each byte that its box reads and writes, which do not stay in a cache.
STORE_CLOCKS = 0.16
BOX_BYTE_CLOCKS = 7.8e-7
PACK_CLOCKS = 5  # for a vector of weights
WEIGHT_CLOCKS = 0.43  # for a weight in each box of outputs
SUM_CLOCKS = 1  # for a sum of a slice,
GRADIENT_CLOCKS = 3  # for a value of dy,
FILL_CLOCKS = 3  # and of x
# As in the launchers.
MULTIPLICATIONS_PER_THREAD = 1048576
TASKS_PER_THREAD = 4
ENOUGH_TILES = 256
SLAB_UNITS = 98304
TURNED_CHANNELS = 256
LINE = 16  # fp32 values in a cache line


class Kernel(NamedTuple):
    """Traits that the time depends on. Rows and columns are a register block's; ``unit`` is its step along channels."""

    rows: float
    columns: float
    unit: float
    tile_m: float
    tile_n: float
    spare_dimensions: float
    depthwise: bool
    slow_dots: bool  # multiplies by bf16 dot products, which are slow on this processor
    any_epilogue: bool  # reads its epilogue from the problem


class Block(NamedTuple):
    """A kernel's register block and its use."""

    rows: float
    columns: float
    lanes: float
    latency: float
    vector: float
    dot: float
    threads: float


def block_clocks(b: Block, rows: float, vectors: float) -> float:
    """Clocks per step of a block of ``rows`` rows and ``vectors`` vectors."""
    if rows <= 0 or vectors <= 0:
        return 0.0
    return max(rows * vectors / 2 * b.dot, (rows + vectors) / 2, b.latency) + b.vector * vectors


def row_clocks(b: Block, rows: float, columns: float) -> float:
    """Clocks per step of ``rows`` rows and all columns."""
    whole = floor(columns / b.columns)
    rest = ceil((columns - whole * b.columns) / b.lanes)
    return whole * block_clocks(b, rows, b.columns / b.lanes) + block_clocks(b, rows, rest)


def busiest(tasks: float, threads: float, most: float, mean: float) -> float:
    """Share of all work that the busiest thread takes, if each thread takes one of ``tasks`` tasks after another."""
    return min(1.0, max(ceil(tasks / threads) / tasks * most / mean, 1 / threads))


def wanted_tasks(threads: float) -> float:
    """Number of tasks into which launchers cut the work."""
    return TASKS_PER_THREAD * threads if threads > 1 else 1.0


def pitch_of(units: float) -> float:
    """Distance from a point of a slab to the next, in units: an odd number of lines."""
    if units < LINE:
        return units
    lines = ceil(units / LINE)
    return LINE * (lines + 1 if floor(lines / 2) * 2 == lines else lines)


def pointwise(p: Problem) -> bool:
    """Whether each output is a product of one point."""
    return filter_points(p) == 1 and strides(p) == 1 and in_points(p) == out_points(p)


def sweep_clocks(p: Problem, t: Kernel, b: Block) -> float:
    """Forward and backward data. Boxes of outputs: rows of blocks are outputs along a line, columns are channels."""
    back = p.backward_data
    channels = (p.k if back else p.c) / p.groups
    columns = (p.c if back else p.k) / p.groups
    units = ceil(channels / t.unit)
    taps = filter_points(p) / (strides(p) if back else 1.0)
    line = ceil(p.in_w / p.stride_w) if back else p.out_w
    lines = p.n * out_points(p) / p.out_w
    if back:
        lines = p.n * in_points(p) / p.in_w * min(p.stride_w, p.filter_w)
    if pointwise(p):
        line = p.n * in_points(p)
        lines = 1.0
    half = floor((b.rows + 1) / 2)  # a block is two runs of outputs, each half of its rows
    runs = floor(line / half)
    rest = line - runs * half
    edge = 0.5 * row_clocks(b, max(2 * rest, 1.0), columns) if rest > 0 else 0.0
    steps = lines * (runs / 2 * row_clocks(b, b.rows, columns) + edge)
    panels = ceil(columns / b.columns)
    blocks = lines * ceil(line / half) / 2 * panels * p.groups
    vectors = b.rows * min(b.columns, columns) / b.lanes
    clocks = steps * units * taps * p.groups + blocks * LINE_CLOCKS * max(0.0, vectors - LINES_ON_THEIR_WAY)

    outputs = lines * line
    wanted = wanted_tasks(b.threads)
    asked = min(outputs, max(min(t.tile_m, outputs * p.groups / wanted), 4 * b.rows))
    box = max(1.0, min(asked, SLAB_UNITS / pitch_of(units)))
    boxes = ceil(outputs / box)
    slabs = boxes * p.groups
    parts = min(panels, max(ceil(columns / max(t.tile_n, b.columns)), ceil(wanted / slabs)))
    clocks *= busiest(slabs * parts, b.threads, ceil(panels / parts) * parts, panels)
    bytes_of_box = box * (units + columns / parts) * 4
    weights = filter_points(p) * p.groups * units * columns
    clocks += outputs * p.groups * columns * (STORE_CLOCKS + BOX_BYTE_CLOCKS * bytes_of_box) / b.threads
    return clocks + weights * (PACK_CLOCKS / b.lanes + WEIGHT_CLOCKS * boxes) / b.threads


def weight_clocks(p: Problem, b: Block) -> float:
    """Backward weight: rows and columns are channels of dy and x, or the other way round where that fills vectors."""
    c = p.c / p.groups
    k = p.k / p.groups
    pitch = pitch_of(c)
    merged = pitch == c and p.dilation_w == 1
    run = c * (p.filter_w if merged else 1.0)
    taps = filter_points(p) / (p.filter_w if merged else 1.0)
    turned = c <= TURNED_CHANNELS and 11 * ceil(k / b.lanes) * run < 10 * ceil(run / b.lanes) * k
    rows = run if turned else k
    columns = k if turned else run
    panels_m = ceil(rows / b.rows)
    panels_n = ceil(columns / b.columns)
    each = ceil(rows / panels_m) if turned else b.rows
    whole = floor(rows / each)
    outputs = p.n * out_points(p)
    steps = whole * row_clocks(b, each, columns) + row_clocks(b, rows - whole * each, columns)
    boxes = ceil(max(1.0, outputs * max(pitch, LINE)) / SLAB_UNITS)
    panels = panels_m * panels_n * taps
    slices = max(1.0, min(boxes, ceil(ENOUGH_TILES / (panels * p.groups))))
    parts = ceil(wanted_tasks(b.threads) / (slices * p.groups))
    parts_n = min(taps * panels_n, parts)
    parts_m = min(panels_m, ceil(parts / parts_n))
    most = ceil(panels_m / parts_m) * ceil(taps * panels_n / parts_n)
    tasks = slices * p.groups * parts_m * parts_n
    clocks = steps * taps * p.groups * outputs * busiest(tasks, b.threads, most * parts_m * parts_n, panels)
    clocks += slices * panels * p.groups * b.rows * b.columns * SUM_CLOCKS / b.threads
    clocks += outputs * p.groups * rows * parts_n * GRADIENT_CLOCKS / b.threads
    if not pointwise(p):
        clocks += outputs * p.groups * c * parts_m * FILL_CLOCKS / b.threads
    return clocks


def block_of(p: Problem, t: Kernel, d: Device, rate: float) -> Block:
    """The use of a kernel's register block."""
    useful = work(p) / MULTIPLICATIONS_PER_THREAD
    return Block(
        t.rows,
        t.columns,
        max(1.0, rate / 4),
        WEIGHT_LATENCY_CLOCKS if p.backward_weight else LATENCY_CLOCKS,
        WEIGHT_VECTOR_CLOCKS if p.backward_weight else VECTOR_CLOCKS,
        SLOW_DOT if t.slow_dots else 1.0,
        1.0 if useful < 2 else min(floor(useful), d.units),
    )


def clocks_of(p: Problem, t: Kernel, d: Device, b: Block, rate: float) -> float:
    """Clocks of the busiest thread."""
    c = p.c / p.groups
    whole_groups = c == p.k / p.groups and ceil(b.lanes / c) * c == b.lanes and c < b.lanes
    if t.depthwise or whole_groups:  # vectors of channels or of outputs
        return 2 * work(p) / rate / d.units
    return weight_clocks(p, b) if p.backward_weight else sweep_clocks(p, t, b)


def estimate(p: Problem, t: Kernel, d: Device) -> Estimate:
    """The time of a launch."""
    rate = max(1.0, d.rate_fp32)
    b = block_of(p, t, d, rate)
    g = gemm(p)
    tiles = p.groups * ceil(g.m / max(1.0, b.rows)) * ceil(g.n / max(1.0, b.columns))
    clocks = clocks_of(p, t, d, b, rate) if work(p) > 0 else 0.0
    epilogue = ANY_EPILOGUE if t.any_epilogue else 1.0
    compute_us = clocks / d.clocks_per_us * spare(t.spare_dimensions) * epilogue
    memory_us = moved_bytes(p) / d.bytes_per_us
    return Estimate(tiles, ceil(tiles / b.threads), compute_us, 0.0, memory_us, compute_us + memory_us)
