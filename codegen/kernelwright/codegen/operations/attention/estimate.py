"""Rough compile time of a kernel: for the order of a build and its progress, nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.kinds import Family
from kernelwright.codegen.operations.attention.spec import attention_spec

# Processor seconds on one core of a 2.1 GHz Xeon for one kernel of each family of CK Tile with head dimension 128 and
# the lean headers; combine kernels hold several device functions each.
_CK_TILE_S: Mapping[Family, float] = {
    Family.FWD: 12.0,
    Family.FWD_SPLITKV: 9.0,
    Family.FWD_SPLITKV_COMBINE: 8.0,
    Family.FWD_PAGEDKV: 10.0,
    Family.FWD_APPENDKV: 4.0,
    Family.BATCH_PREFILL: 10.0,
    Family.BWD_DOT_DO_O: 4.0,
    Family.BWD_DQ_DK_DV: 19.0,
    Family.BWD_CONVERT_DQ: 2.5,
}
# The same for NVIDIA GPUs, as a multiple of CK Tile's.
_PART = {"ck_tile": 1.0, "cutlass": 4.0}
# Processor seconds of CPU kernels on a Zen 5 core: those with matrix products, and the others.
_CPU_S = (2.4, 0.5)


def compile_seconds(kernel: Kernel, arch: Arch) -> float:
    """The estimated processor seconds; measurements of an earlier build are better (see ``schedule.Experience``)."""
    spec = attention_spec(kernel)
    if arch.backend == "cpu":
        return _CPU_S[0 if any(vars(spec.warp_tile).values()) else 1]
    return round(_CK_TILE_S[spec.family] * _PART[arch.backend], 2)
