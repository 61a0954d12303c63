"""The time of a convolution on CPUs and AMD GPUs: the formula and the numbers of the dispatcher's estimate.cpp."""

from __future__ import annotations

import math

from kernelwright.arch import Arch
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.posed import Posed

# A test compares them with estimate.cpp, which says what each is.
NUMBERS = {"kFillBytesPerClock": 48, "kSpareDimension": 1.01}
_C = NUMBERS


def microseconds(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int, units: int) -> float:
    """Predicted time of a launch with ``split`` slices of the sum on ``units`` cores or compute units."""
    compute, fill = _compute(spec, posed, arch, split, units)
    dims, asked = SPATIAL_DIMS[spec.layout], SPATIAL_DIMS[posed.layout]
    compute *= _C["kSpareDimension"] ** max(0, dims - asked)
    memory = _memory_bytes(spec, posed, arch, split) / (arch.memory_gbytes_per_s * 1e3)
    return compute + memory if arch.backend == "cpu" else max(compute, fill, memory)


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


def _memory_bytes(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int) -> float:
    """All that a kernel moves; on a CPU the block along m, n and k decides how often."""
    x, w, y = _tensor_bytes(posed)
    slices = 8.0 * split * w / posed.element_bytes if split > 1 else 0.0
    residual = y if posed.residual else 0.0
    if arch.backend == "cpu" and not spec.depthwise:
        m, n, k = _shape(posed)
        along_m, along_n = max(1, math.ceil(m / spec.tile.m)), max(1, math.ceil(n / spec.tile.n))
        passes = 2 * max(1, math.ceil(k / spec.tile.k)) - 1
        if posed.direction is Direction.FORWARD:
            x, w, y = x * along_n, w * along_m, y * passes
        elif posed.direction is Direction.BACKWARD_DATA:
            x, w, y = x * passes, w * along_m, y * along_n
        else:
            x, w, y = x * along_m, w * passes, y * along_n
    return x + w + y + residual + slices


def _multiplies_vectors(spec: GroupedConvSpec, posed: Posed, arch: Arch) -> bool:
    """Whether one vector of a CPU kernel holds whole groups, or a depthwise kernel has no GEMM."""
    if spec.depthwise:
        return True
    per_group = posed.c // posed.groups
    lanes = max(1.0, _rate(arch, "fp32") / 4.0)
    return arch.backend == "cpu" and per_group == posed.k // posed.groups and per_group < lanes


def _block_clocks(spec: GroupedConvSpec, arch: Arch) -> float:
    """Of a CPU's register block, per step along k."""
    warp = spec.warp_tile
    vectors = warp.n / max(1.0, _rate(arch, spec.dtype if warp.k > 1 else "fp32") / (4.0 * warp.k))
    return max(warp.m * vectors, warp.m + vectors, 8.0) / 2.0


def _compute(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int, units: int) -> tuple[float, float]:
    """Microseconds of arithmetic, and of moving operands to LDS."""
    (m, n, k), clocks = _shape(posed), arch.clock_ghz * 1e3
    if _multiplies_vectors(spec, posed, arch):
        return 2.0 * posed.groups * m * n * k / _rate(arch, "fp32") / units / clocks, 0.0
    cpu = arch.backend == "cpu"
    tile = spec.warp_tile if cpu else spec.tile
    steps = math.ceil(math.ceil(k / tile.k) / split)
    tiles = posed.groups * math.ceil(m / tile.m) * math.ceil(n / tile.n) * split
    waves = math.ceil(tiles / units)
    each = _block_clocks(spec, arch) if cpu else 2.0 * tile.m * tile.n * tile.k / _rate(arch, posed.dtype)
    compute = waves * steps * each / clocks
    if cpu:
        return compute, 0.0
    lines = (tile.m + tile.n) * posed.element_bytes * tile.k
    return compute, waves * steps * lines / _C["kFillBytesPerClock"] / clocks
