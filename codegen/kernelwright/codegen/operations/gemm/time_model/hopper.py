"""The time of a warp-specialised GEMM on Hopper: the formula and the numbers of the dispatcher's analytic_cuda.cpp."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.operations.gemm.spec import GemmSpec, StreamK
from kernelwright.codegen.operations.gemm.time_model.posed import Posed

# Fitted by benchmarks/selection/fit.py; a test compares them with analytic_cuda.cpp, which says what each is.
NUMBERS = {
    "kRowsOfInstruction": 64, "kBytesOfInstruction": 32, "kReadRowsClocks": 13.99, "kReadColumnClocks": 0.25,
    "kInstructionSlack": 0.8804, "kFillBytesPerClock": 107.7, "kReceiveBytesPerClock": 130.7, "kStepClocks": 19.49,
    "kClusterStepClocks": 38.99, "kLatencyClocks": 2043, "kStoreBytesPerClock": 17.49,
    "kHiddenStore": 0.2305, "kStartClocks": 553.9, "kRereadShare": 1.86, "kMemoryShare": 0.8784,
    "kInFlightBytes": 10250, "kOverlap": 0.2718, "kLaunchUs": 1.273, "kCutUs": 2.705, "kCuttableUs": 0.7752,
    "kSliceUs": 0.228, "kSliceElementsPerUs": 26330, "kStreamSlack": 1.25,
    "kEpilogueElements": 16384, "kSwappedSlack": 1.02, "kSharedSlack": 1.01,
}  # fmt: skip
_C = NUMBERS


@dataclass(frozen=True)
class _Tile:
    """The tile as wgmma sees it: ``rows`` and ``columns`` are those of its instruction."""

    m: int
    n: int
    k: int
    rows: int
    columns: int
    cluster_m: int
    cluster_n: int
    swapped: bool
    pingpong: bool


def _tile_of(spec: GemmSpec) -> _Tile:
    tile, warp = spec.tile, spec.warp_tile
    plain = warp.m == _C["kRowsOfInstruction"] and warp.n == tile.n
    swapped = not plain and warp.m == tile.m and warp.n == _C["kRowsOfInstruction"]
    rows, columns = (tile.n, tile.m) if swapped else (tile.m, tile.n)
    pingpong = spec.wave.m == 1 and spec.wave.n == 1
    return _Tile(tile.m, tile.n, tile.k, rows, columns, spec.cluster.m, spec.cluster.n, swapped, pingpong)


def _shared_panels(tile: _Tile, running: float, tiles_m: float, tiles_n: float) -> float:
    """Elements per step of k that tiles side by side need, in the rectangle that needs least."""
    least, rows = running * (tile.m + tile.n), 1.0
    while True:
        r = min(rows, tiles_m)
        if running / r <= tiles_n:
            least = min(least, r * tile.m + max(1.0, running / r) * tile.n)
        if r >= min(tiles_m, running):
            return least
        rows *= 2


def microseconds(spec: GemmSpec, posed: Posed, arch: Arch, split: int) -> float:
    """Predicted time of a launch with ``split`` slices of k on a device of the architecture."""
    t, units = _tile_of(spec), arch.compute_units
    m, n, k, products = posed.m, posed.n, posed.k, max(1, posed.batch)
    size, _, size_c = posed.sizes
    rate = arch.flops_per_clock_per_cu.get(posed.types[0], 0.0)
    tiles_m = math.ceil(m / (t.m * t.cluster_m)) * t.cluster_m
    tiles_n = math.ceil(n / (t.n * t.cluster_n)) * t.cluster_n
    tiles = tiles_m * tiles_n * split * products
    stream = spec.stream_k is not StreamK.NONE
    cut = split > 1 or stream
    waves = max(1.0, tiles / units) * _C["kStreamSlack"] if stream else math.ceil(tiles / units)
    steps, running = math.ceil(math.ceil(k / t.k) / split), min(tiles, units)

    slices = t.k * size / _C["kBytesOfInstruction"]
    multiply = 2 * _C["kRowsOfInstruction"] * t.columns * (_C["kBytesOfInstruction"] / size) / max(1.0, rate)
    read = _C["kReadRowsClocks"] + _C["kReadColumnClocks"] * t.columns
    step = slices * t.rows / _C["kRowsOfInstruction"] * max(multiply, read) * _C["kInstructionSlack"]
    stage = (t.m + t.n) * t.k * size
    stages = max(1.0, (arch.lds_bytes - _C["kEpilogueElements"] * size_c) // stage)
    fetched = (t.m / t.cluster_n + t.n / t.cluster_m) * t.k * size
    fill = fetched / _C["kFillBytesPerClock"] + stage / _C["kReceiveBytesPerClock"]
    fill = max(fill, _C["kLatencyClocks"] / max(1.0, stages - 1))
    hidden = _C["kHiddenStore"] if t.pingpong and waves > 1 else 1.0
    store = t.m * t.n * size_c / _C["kStoreBytesPerClock"] * hidden * (2.0 if cut else 1.0)
    slack = (_C["kSwappedSlack"] if t.swapped else 1.0) * (1.0 if t.pingpong else _C["kSharedSlack"])
    longest = max(step, fill) + (min(step, fill) if stages < 3 else 0.0)
    waits = _C["kStepClocks"] + (_C["kClusterStepClocks"] if t.cluster_m * t.cluster_n > 1 else 0.0)
    clocks = waves * (steps * (longest + waits) * slack + store) + _C["kStartClocks"]
    inside = clocks / (arch.clock_ghz * 1e3)

    once = (m + n) * k * size * products
    side = max(1.0, running / split)
    panels = _shared_panels(t, min(side, tiles_m * tiles_n), tiles_m, tiles_n)
    again = products * tiles_m * tiles_n / side * k * size * panels
    results = m * n * products * size_c * (1 + (posed.beta != 0) + posed.num_d)
    reached = min(1.0, running * stages * stage / (_C["kInFlightBytes"] * units))
    moved = once + _C["kRereadShare"] * max(0.0, again - once) + results
    memory = moved / (arch.memory_gbytes_per_s * 1e3 * _C["kMemoryShare"] * reached)
    both = max(inside, memory) + _C["kOverlap"] * min(inside, memory)
    added = (split - 1) * (_C["kSliceUs"] + t.m * t.n / _C["kSliceElementsPerUs"])
    return both + _C["kLaunchUs"] + (_C["kCutUs"] if cut else _C["kCuttableUs"] if spec.split_k else 0.0) + added
