"""The time of a GEMM on AMD GPUs: the formula and the numbers of the dispatcher's analytic.cpp."""

from __future__ import annotations

import math

from kernelwright.arch import Arch
from kernelwright.codegen.operations.gemm.spec import GemmSpec, StreamK
from kernelwright.codegen.operations.gemm.time_model.posed import Posed

# A test compares them with analytic.cpp, which says what each is.
NUMBERS = {"kFillBytesPerClock": 48, "kSecondLaunchUs": 4}
_C = NUMBERS


def microseconds(spec: GemmSpec, posed: Posed, arch: Arch, split: int, units: int) -> float:
    """Predicted time of a launch with ``split`` slices of k on ``units`` compute units."""
    stream, quantum = spec.stream_k is not StreamK.NONE, spec.tile
    tiles = math.ceil(posed.m / quantum.m) * math.ceil(posed.n / quantum.n) * split * posed.batch
    steps_of_tile = math.ceil(math.ceil(posed.k / quantum.k) / split)
    per_us = arch.clock_ghz * 1e3
    size_a, size_b, _ = posed.sizes
    clocks = 2.0 * quantum.m * quantum.n * quantum.k / (arch.flops_per_clock_per_cu.get(posed.types[0]) or 1.0)
    fill = (quantum.m * size_a + quantum.n * size_b) * quantum.k / _C["kFillBytesPerClock"]
    moved, left = _memory_bytes(spec, posed, split, min(units, tiles)), 0.0
    steps: float = math.ceil(tiles / units) * steps_of_tile
    twice = arch.backend == "ck_tile" and (spec.split_k or stream)
    if stream:
        steps = math.ceil(tiles * steps_of_tile / units)
        left = 4.0 * spec.tile.m * spec.tile.n * min(units, tiles * steps_of_tile)
        moved += 2.0 * left
    elif twice:
        left = 4.0 * split * posed.m * posed.n * posed.batch
        moved += 2.0 * left if split == 1 else 0.0
    bytes_per_us = arch.memory_gbytes_per_s * 1e3
    compute, filled, memory = steps * clocks / per_us, steps * fill / per_us, moved / bytes_per_us
    if twice:
        second = left / bytes_per_us
        return max(compute, filled, memory - second) + second + _C["kSecondLaunchUs"]
    return max(compute, filled, memory)


def _memory_bytes(spec: GemmSpec, posed: Posed, split: int, running: float) -> float:
    """All that a launch reads and writes: each operand as often as tiles side by side do not share it."""
    tiles_m, tiles_n = math.ceil(posed.m / spec.tile.m), math.ceil(posed.n / spec.tile.n)
    size_a, size_b, size_c = posed.sizes
    bytes_a, bytes_b = posed.m * size_a, posed.n * size_b
    side = max(1.0, min(running / split, tiles_m * tiles_n))
    panel_a, panel_b = _shared_panels(side, tiles_m, tiles_n, bytes_a / tiles_m, bytes_b / tiles_n)
    rounds = tiles_m * tiles_n / side * posed.k
    read_a, read_b = rounds * panel_a, rounds * panel_b
    shared_a, shared_b = posed.stride_a == 0, posed.stride_b == 0
    operands = read_a * (1 if shared_a else posed.batch) + read_b * (1 if shared_b else posed.batch)
    sums = 8.0 * split if split > 1 else 0.0
    results = posed.m * posed.n * (size_c * (1.0 + (posed.beta != 0)) + sums) * posed.batch
    return operands + results + sum(_tensor_bytes(posed, index) for index in range(posed.num_d))


def _tensor_bytes(posed: Posed, index: int) -> float:
    line = posed.n if posed.layout[2] == "r" else posed.m
    one_line = index < len(posed.ld_multi_d) and posed.ld_multi_d[index] == 0
    shared = index < len(posed.stride_multi_d) and posed.stride_multi_d[index] == 0
    return posed.sizes[2] * (line if one_line else posed.m * posed.n) * (1 if shared else posed.batch)


def _shared_panels(v: float, tiles_m: int, tiles_n: int, bytes_a: float, bytes_b: float) -> tuple[float, float]:
    least, rows = (v * bytes_a, v * bytes_b), 1.0
    while True:
        r = min(rows, tiles_m)
        found = (r * bytes_a, max(1.0, v / r) * bytes_b)
        if v / r <= tiles_n and sum(found) < sum(least):
            least = found
        if r >= min(tiles_m, v):
            return least
        rows *= 2
