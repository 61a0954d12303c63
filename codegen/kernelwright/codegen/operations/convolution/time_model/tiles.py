"""The time of a convolution on CPUs and AMD GPUs: the formula and the numbers of the dispatcher's estimate.cpp."""

from __future__ import annotations

import math

from kernelwright.arch import Arch
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model import processors
from kernelwright.codegen.operations.convolution.time_model.posed import Posed

# A test compares them with estimate.cpp, which says what each is.
NUMBERS = {"kFillBytesPerClock": 48, "kSpareDimension": 1.01}
_C = NUMBERS


def microseconds(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int, units: int) -> float:
    """Predicted time of a launch with ``split`` slices of the sum on ``units`` cores or compute units."""
    memory = _memory_bytes(posed, split) / (arch.memory_gbytes_per_s * 1e3)
    if arch.backend == "cpu":
        return processors.microseconds(spec, posed, arch, units) + memory
    compute, fill = _compute(spec, posed, arch, split, units)
    dims, asked = SPATIAL_DIMS[spec.layout], SPATIAL_DIMS[posed.layout]
    compute *= _C["kSpareDimension"] ** max(0, dims - asked)
    return max(compute, fill, memory)


def _rate(arch: Arch, dtype: str) -> float:
    return arch.flops_per_clock_per_cu.get(dtype) or 1.0


def _shape(posed: Posed) -> tuple[float, float, float]:
    m, n, k = posed.gemm
    if posed.direction is not Direction.BACKWARD_DATA:
        return m, n, k
    return posed.n * math.prod(posed.size), n, max(1.0, k / math.prod(posed.stride))


def _tensor_bytes(posed: Posed) -> tuple[float, float, float]:
    x = posed.n * posed.c * math.prod(posed.size)
    w = posed.k * (posed.c // posed.groups) * posed.filter_points
    y = posed.n * posed.k * posed.out_points
    size = posed.element_bytes
    return float(x * size), float(w * size), float(y * size)


def _memory_bytes(posed: Posed, split: int) -> float:
    """All that a kernel moves, each tensor once."""
    x, w, y = _tensor_bytes(posed)
    slices = 8.0 * split * w / posed.element_bytes if split > 1 else 0.0
    return x + w + y + (y if posed.residual else 0.0) + slices


def _compute(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int, units: int) -> tuple[float, float]:
    """Microseconds of arithmetic, and of moving operands to LDS."""
    (m, n, k), clocks, tile = _shape(posed), arch.clock_ghz * 1e3, spec.tile
    if spec.depthwise:
        return 2.0 * posed.groups * m * n * k / _rate(arch, "fp32") / units / clocks, 0.0
    steps = math.ceil(math.ceil(k / tile.k) / split)
    tiles = posed.groups * math.ceil(m / tile.m) * math.ceil(n / tile.n) * split
    waves = math.ceil(tiles / units)
    compute = waves * steps * (2.0 * tile.m * tile.n * tile.k / _rate(arch, posed.dtype)) / clocks
    lines = (tile.m + tile.n) * posed.element_bytes * tile.k
    return compute, waves * steps * lines / _C["kFillBytesPerClock"] / clocks
