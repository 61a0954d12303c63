"""The time of a GEMM on a CPU: the formula and the numbers of the dispatcher's analytic_cpu.cpp."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernelwright.arch import Arch
from kernelwright.codegen.operations.gemm.spec import GemmSpec, StreamK
from kernelwright.codegen.operations.gemm.time_model.posed import Posed

# A test compares them with analytic_cpu.cpp, which says what each is.
NUMBERS = {
    "kLatencyClocks": 4.9, "kRowClocks": 0.05, "kSlowDot": 3.7, "kBlockClocks": 215, "kOwnVectorClocks": 4.2,
    "kSharedVectorClocks": 5.9, "kVectorOfAClocks": 30, "kFarVectorClocks": 13.7, "kPartialClocks": 5.2,
    "kAddClocks": 2.8, "kMeetClocks": 10400, "kReadByteClocks": 0.1, "kMultiplicationsPerThread": 1048576,
    "kTasksPerThread": 4, "kPartialUnits": 16777216, "kFewVectors": 4, "kStreamDepth": 64, "kDirectExtent": 128,
    "kDirectWork": 884736,
}  # fmt: skip
_C = NUMBERS


@dataclass(frozen=True)
class _Shape:
    """A problem and a kernel's register block; ``units`` are steps along K."""

    m: float
    n: float
    k: float
    rows: float
    columns: float
    lanes: float
    tile_m: float
    tile_n: float
    units: float
    blocks_k: float
    threads: float
    partial: bool
    shuffled: bool


def _threads(multiplications: float, units: int) -> float:
    useful = multiplications / _C["kMultiplicationsPerThread"]
    return 1 if useful < 2 else min(math.floor(useful), units)


def _shape_of(spec: GemmSpec, posed: Posed, arch: Arch, units: int) -> _Shape:
    m, n, k = posed.m, posed.n, max(posed.k, 1)
    warp, tile = spec.warp_tile, spec.tile
    blocks_k = math.ceil(k / tile.k)
    return _Shape(
        m, n, k, warp.m, warp.n, max(1.0, arch.flops_per_clock_per_cu.get("fp32", 0) / 4.0), tile.m, tile.n,
        math.ceil(k / warp.k), blocks_k, _threads(m * n * k, units), blocks_k > 1 and posed.types[2] != "fp32",
        spec.preshuffle,
    )  # fmt: skip


def _block(rows: float, vectors: float, s: _Shape) -> float:
    if rows <= 0 or vectors <= 0:
        return 0.0
    step = max(rows * vectors / 2, (rows + vectors) / 2, _C["kLatencyClocks"]) + _C["kRowClocks"] * rows
    return s.units * step + s.blocks_k * _C["kBlockClocks"]


def _product(rows: float, columns: float, s: _Shape) -> float:
    """Clocks of all register blocks; those at edges are smaller."""
    whole_m, whole_n = math.floor(rows / s.rows), math.floor(columns / s.columns)
    rest_m, rest_n = rows - whole_m * s.rows, math.ceil((columns - whole_n * s.columns) / s.lanes)
    vectors = s.columns / s.lanes
    whole = whole_n * (whole_m * _block(s.rows, vectors, s) + _block(rest_m, vectors, s))
    return whole + whole_m * _block(s.rows, rest_n, s) + _block(rest_m, rest_n, s)


def _packed(s: _Shape) -> float:
    short_m = s.m <= s.tile_m
    count_n = 1 if short_m and not s.partial else math.ceil(s.n / s.tile_n)
    block_n = math.ceil(math.ceil(s.n / count_n) / s.columns) * s.columns
    count_n = math.ceil(s.n / block_n)
    super_m = math.ceil(s.m / s.rows) * s.rows
    if s.partial:
        most = math.floor(math.floor(_C["kPartialUnits"] / block_n) / s.tile_m) * s.tile_m
        super_m = min(super_m, max(s.tile_m, most))
    count_m = math.ceil(s.m / super_m)
    panels = block_n / s.columns if short_m else super_m / s.rows
    spread = _C["kTasksPerThread"] * s.threads if s.threads > 1 else 1
    rounds = math.ceil(math.ceil(panels / max(1, s.tile_m // s.rows)) / s.threads)
    tasks = min(panels, spread if short_m else rounds * s.threads)
    share = max(min(1.0, math.ceil(tasks / s.threads) * math.ceil(panels / tasks) / panels), 1 / s.threads)
    vectors_a, vectors_b = s.m * s.units / s.lanes, 0.0 if s.shuffled else s.n * s.units / s.lanes
    move = s.m * s.n * (s.blocks_k - 1) * _C["kPartialClocks"] / s.threads
    if short_m:
        move += vectors_a * _C["kVectorOfAClocks"] / min(s.threads, math.ceil(s.m / s.rows)) * count_n
        move += vectors_b * _C["kOwnVectorClocks"] * share
    else:
        move += vectors_a * _C["kVectorOfAClocks"] / s.threads * count_n
        move += vectors_b * (_C["kSharedVectorClocks"] * count_m / s.threads + _C["kFarVectorClocks"])
    if s.threads > 1:
        move += count_m * count_n * s.blocks_k * _C["kMeetClocks"]
    return _product(s.m, s.n, s) * share + move


def _tiles(s: _Shape, stream: bool, slices: int) -> float:
    """Persistent, split-K and stream-K kernels."""
    tile_m = min(s.tile_m, math.ceil(s.m / s.rows) * s.rows)
    tile_n = min(s.tile_n, math.ceil(s.n / s.columns) * s.columns)
    along_m = math.ceil(s.m / tile_m)
    count, whole = along_m * math.ceil(s.n / tile_n), not stream and slices <= 1
    each, busiest = _product(s.m, s.n, s) / count, math.ceil(count * slices / s.threads) / slices
    if stream:
        busiest = max(count / s.threads, 1 / min(64.0, math.ceil(s.k / _C["kStreamDepth"])))
    if whole:
        busiest, each = math.ceil(count / min(count, s.threads)), _product(tile_m, tile_n, s)
    vectors_b = tile_n * s.units / s.lanes
    if s.blocks_k <= 1 and along_m > 1:
        vectors_b /= min(along_m, max(busiest, 1.0))
    pack = tile_m * s.units / s.lanes * _C["kVectorOfAClocks"] + vectors_b * _C["kSharedVectorClocks"]
    move = busiest * pack + s.m * s.n * (s.blocks_k - 1) * _C["kPartialClocks"] / s.threads
    if not whole:
        move += s.m * s.n * (2 if stream else slices) * _C["kAddClocks"] / s.threads
    return busiest * each + move + (_C["kMeetClocks"] if s.threads > 1 else 0.0)


def _clocks(spec: GemmSpec, posed: Posed, s: _Shape, split: int) -> float:
    stream = spec.stream_k is not StreamK.NONE
    if stream or spec.persistent or split > 1:
        return _tiles(s, stream, split)
    if not s.shuffled and min(s.m, s.n) <= _C["kFewVectors"]:
        read = max(s.m, s.n) * s.k * posed.sizes[0] * _C["kReadByteClocks"]
        return s.m * s.n * s.k / s.lanes / 2 / s.threads + read / s.threads
    direct = max(s.m, s.n, s.k) <= _C["kDirectExtent"] and s.m * s.n * s.k <= _C["kDirectWork"]
    if not s.shuffled and posed.types[0] == "fp32" and direct:
        return _product(s.m, s.n, s)
    return _packed(s)


def microseconds(spec: GemmSpec, posed: Posed, arch: Arch, split: int, units: int) -> float:
    """Predicted time of a launch with ``split`` slices of k on ``units`` cores, whose dot products are fast."""
    s = _shape_of(spec, posed, arch, units)
    together = _threads(s.m * s.n * s.k * posed.batch, units)
    beside = posed.batch > 1 and (s.threads == 1 or posed.batch >= units)
    if beside:
        s = replace(s, threads=1)
    rounds = math.ceil(posed.batch / together) if beside else posed.batch
    return rounds * _clocks(spec, posed, s, split) / (arch.clock_ghz * 1e3)
