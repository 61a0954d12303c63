"""The arithmetic of a convolution on a CPU: the formula and the numbers of the dispatcher's estimate_cpu.cpp."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.posed import Posed

# A test compares them with estimate_cpu.cpp, which says what each is.
NUMBERS = {
    "kLatencyClocks": 4.3, "kVectorClocks": 0.18, "kWeightLatencyClocks": 10, "kWeightVectorClocks": 0.75,
    "kSlowDot": 3.7, "kLinesOnTheirWay": 16, "kLineClocks": 17, "kStoreClocks": 0.16, "kBoxByteClocks": 7.8e-7,
    "kPackClocks": 5, "kWeightClocks": 0.43, "kSumClocks": 1, "kGradientClocks": 3, "kFillClocks": 3,
    "kSpareDimension": 1.01, "kMultiplicationsPerThread": 1048576, "kTasksPerThread": 4, "kEnoughTiles": 256,
    "kSlabUnits": 98304, "kTurnedChannels": 256,
}  # fmt: skip
_C = NUMBERS


@dataclass(frozen=True)
class _Block:
    """A kernel's register block, and how it is used."""

    rows: float
    columns: float
    lanes: float
    latency: float
    vector: float
    threads: float

    def clocks(self, rows: float, vectors: float) -> float:
        """Of so many rows and vectors, per step."""
        if rows <= 0 or vectors <= 0:
            return 0.0
        return max(rows * vectors / 2, (rows + vectors) / 2, self.latency) + self.vector * vectors

    def clocks_of_row(self, rows: float, columns: float) -> float:
        """Of so many rows and all columns."""
        whole = math.floor(columns / self.columns)
        rest = math.ceil((columns - whole * self.columns) / self.lanes)
        return whole * self.clocks(rows, self.columns / self.lanes) + self.clocks(rows, rest)


def _busiest(tasks: float, threads: float, most: float, mean: float) -> float:
    return min(1.0, max(math.ceil(tasks / threads) / tasks * most / mean, 1 / threads))


def _wanted(threads: float) -> float:
    return _C["kTasksPerThread"] * threads if threads > 1 else 1


def _pitch(units: float) -> float:
    if units < 16:
        return units
    lines = math.ceil(units / 16)
    return 16 * (lines + 1 if lines % 2 == 0 else lines)


def _pointwise(p: Posed) -> bool:
    return p.filter_points == 1 and math.prod(p.stride) == 1 and math.prod(p.size) == p.out_points


def _sweep(spec: GroupedConvSpec, p: Posed, b: _Block) -> float:
    """Forward and backward data."""
    back, c, k = p.direction is Direction.BACKWARD_DATA, p.c // p.groups, p.k // p.groups
    units, columns = math.ceil((k if back else c) / spec.warp_tile.k), c if back else k
    taps, inputs = p.filter_points / (math.prod(p.stride) if back else 1), math.prod(p.size)
    line, lines = float(p.out[2]), p.n * p.out_points / max(p.out[2], 1)
    if back:
        line, lines = math.ceil(p.size[2] / p.stride[2]), p.n * inputs / p.size[2] * min(p.stride[2], p.filter[2])
    if _pointwise(p):
        line, lines = p.n * inputs, 1.0
    half = (spec.warp_tile.m + 1) // 2
    runs, rest = math.floor(line / half), line % half
    edge = 0.5 * b.clocks_of_row(max(2 * rest, 1), columns) if rest > 0 else 0.0
    steps = lines * (runs / 2 * b.clocks_of_row(b.rows, columns) + edge)
    panels = math.ceil(columns / b.columns)
    blocks = lines * math.ceil(line / half) / 2 * panels * p.groups
    vectors = b.rows * min(b.columns, columns) / b.lanes
    waits = blocks * _C["kLineClocks"] * max(0.0, vectors - _C["kLinesOnTheirWay"])
    clocks = steps * units * taps * p.groups + waits
    outputs, wanted = lines * line, _wanted(b.threads)
    box = min(outputs, max(min(spec.tile.m, outputs * p.groups / wanted), 4 * b.rows))
    box = max(1.0, min(box, _C["kSlabUnits"] / _pitch(units)))
    boxes = math.ceil(outputs / box)
    slabs = boxes * p.groups
    parts = min(panels, max(math.ceil(columns / max(spec.tile.n, b.columns)), math.ceil(wanted / slabs)))
    clocks *= _busiest(slabs * parts, b.threads, math.ceil(panels / parts) * parts, panels)
    store = _C["kStoreClocks"] + _C["kBoxByteClocks"] * box * (units + columns / parts) * 4
    weights = p.filter_points * p.groups * units * columns
    clocks += outputs * p.groups * columns * store / b.threads
    return clocks + weights * (_C["kPackClocks"] / b.lanes + _C["kWeightClocks"] * boxes) / b.threads


def _weight(spec: GroupedConvSpec, p: Posed, b: _Block) -> float:
    """Backward weight."""
    c, k, outputs = p.c // p.groups, p.k // p.groups, float(p.n * p.out_points)
    pitch, points = _pitch(c), p.filter_points
    merged = pitch == c and p.dilation[2] == 1
    run, taps = (c * p.filter[2], points / p.filter[2]) if merged else (c, points)
    filled = 11 * math.ceil(k / b.lanes) * run < 10 * math.ceil(run / b.lanes) * k
    turned = c <= _C["kTurnedChannels"] and filled
    rows, columns = (run, k) if turned else (k, run)
    panels_m, panels_n = math.ceil(rows / b.rows), math.ceil(columns / b.columns)
    each = math.ceil(rows / panels_m) if turned else b.rows
    whole = math.floor(rows / each)
    steps = whole * b.clocks_of_row(each, columns) + b.clocks_of_row(rows - whole * each, columns)
    boxes, panels = math.ceil(max(1, outputs * max(pitch, 16)) / _C["kSlabUnits"]), panels_m * panels_n * taps
    slices = max(1, min(boxes, math.ceil(_C["kEnoughTiles"] / (panels * p.groups))))
    parts = math.ceil(_wanted(b.threads) / (slices * p.groups))
    parts_n = min(taps * panels_n, parts)
    parts_m = min(panels_m, math.ceil(parts / parts_n))
    most = math.ceil(panels_m / parts_m) * math.ceil(taps * panels_n / parts_n)
    share = _busiest(slices * p.groups * parts_m * parts_n, b.threads, most * parts_m * parts_n, panels)
    clocks = steps * taps * p.groups * outputs * share
    sums = slices * panels * p.groups * spec.warp_tile.m * spec.warp_tile.n * _C["kSumClocks"]
    copied = outputs * p.groups * rows * parts_n * _C["kGradientClocks"]
    filled_x = 0.0 if _pointwise(p) else outputs * p.groups * c * parts_m * _C["kFillClocks"]
    return clocks + (sums + copied + filled_x) / b.threads


def microseconds(spec: GroupedConvSpec, posed: Posed, arch: Arch, units: int) -> float:
    """Of the arithmetic on ``units`` cores, whose dot products are fast."""
    m, n, k = posed.gemm
    multiplications = posed.groups * m * n * k
    rate = max(1.0, arch.flops_per_clock_per_cu.get("fp32", 0))
    useful, lanes = multiplications / _C["kMultiplicationsPerThread"], max(1.0, rate / 4.0)
    weight = posed.direction is Direction.BACKWARD_WEIGHT
    latency = _C["kWeightLatencyClocks" if weight else "kLatencyClocks"]
    vector = _C["kWeightVectorClocks" if weight else "kVectorClocks"]
    threads = 1 if useful < 2 else min(math.floor(useful), units)
    block = _Block(spec.warp_tile.m, spec.warp_tile.n, lanes, latency, vector, threads)
    each = posed.c // posed.groups
    vectors = each == posed.k // posed.groups and each < lanes and lanes % each == 0
    if multiplications <= 0:
        clocks = 0.0
    elif spec.depthwise or vectors:
        clocks = 2.0 * multiplications / rate / units
    else:
        clocks = (_weight if weight else _sweep)(spec, posed, block)
    spare = max(0, SPATIAL_DIMS[spec.layout] - SPATIAL_DIMS[posed.layout])
    return float(clocks / (arch.clock_ghz * 1e3) * _C["kSpareDimension"] ** spare)
