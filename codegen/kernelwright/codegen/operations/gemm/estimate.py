"""Rough compile time of a kernel: for the order of a build and its progress, nothing else."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import gemm_spec

# Processor seconds on one core of a 2.1 GHz Xeon: parsing and instantiation, and each matrix instruction
# (vector of accumulators on CPU) of one step along K, which every unrolled copy of the loop repeats.
_FIXED_S = {"cpu": 1.5, "ck_tile": 4.5, "cutlass": 18.0}
_INSTRUCTION_S = {"cpu": 0.01, "ck_tile": 0.1, "cutlass": 0.3}


def compile_seconds(kernel: Kernel, arch: Arch) -> float:
    """The estimated processor seconds; measurements of an earlier build are better (see ``schedule.Experience``)."""
    spec = gemm_spec(kernel)
    tile, wave, warp = spec.tile, spec.wave, spec.warp_tile
    if arch.backend == "cpu":
        instructions = warp.m * warp.n / 16  # vectors of the register block; cache blocks are loops
    else:
        instructions = tile.m * tile.n * tile.k / (wave.m * wave.n * wave.k) / (warp.m * warp.n * warp.k)
    return round(_FIXED_S[arch.backend] + _INSTRUCTION_S[arch.backend] * instructions, 2)
