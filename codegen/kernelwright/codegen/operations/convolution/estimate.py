"""Rough compile time of a kernel: for the order of a build and its progress, nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.spec import Direction, conv_spec

# Processor seconds on one core of a 2.1 GHz Xeon, measured with 128x128x32 kernels.
_FIXED_S: Mapping[Direction, float] = {
    Direction.FORWARD: 11.0,
    Direction.BACKWARD_DATA: 13.0,
    Direction.BACKWARD_WEIGHT: 12.0,
}
_CPU_S = 2.0
_CUTLASS_S, _CUTLASS_DEPTHWISE_S = 9.0, 3.0
_INSTRUCTION_S = 0.25
_FURTHER_DIMENSION_S = 1.5


def compile_seconds(kernel: Kernel, arch: Arch) -> float:
    """The estimated processor seconds; measurements of an earlier build are better (see ``schedule.Experience``)."""
    spec = conv_spec(kernel)
    if arch.backend == "cpu":
        return _CPU_S
    if arch.backend == "cutlass":
        return _CUTLASS_DEPTHWISE_S if spec.depthwise else _CUTLASS_S
    tile, wave, warp = spec.tile, spec.wave, spec.warp_tile
    instructions = tile.m * tile.n * tile.k / (wave.m * wave.n * wave.k) / (warp.m * warp.n * warp.k)
    fixed = _FIXED_S[spec.direction] + _FURTHER_DIMENSION_S * (spec.spatial_dims - 1)
    return round(fixed + _INSTRUCTION_S * instructions, 2)
