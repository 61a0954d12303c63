"""Convolution through CK Tile: the C++ symbols of its kernels and the values of their descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kernelwright.arch import Arch
from kernelwright.codegen.backends.ck_tile_waves import most_waves_per_simd
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.constraints.ck_tile_copies import lds_bytes
from kernelwright.codegen.operations.convolution.spec import (
    OPS,
    ConvEpilogue,
    ConvPipeline,
    ConvScheduler,
    GroupedConvSpec,
    conv_spec,
)
from kernelwright.codegen.symbols import CK_TILE_DTYPES, part
from kernelwright.codegen.trees import launcher_files
from kernelwright.problems.convolution.description import Specialization

# None: not in this backend; constraints/ck_tile.py says why.
DTYPES = part(CK_TILE_DTYPES, DType.FP32, DType.FP16, DType.BF16)
PIPELINES: Mapping[ConvPipeline, str | None] = {
    ConvPipeline.COMPV1: "conv::compv1",
    ConvPipeline.COMPV2: None,
    ConvPipeline.MEM: "conv::mem",
    ConvPipeline.COMPV3: "conv::compv3",
    ConvPipeline.COMPV4: "conv::compv4",
    ConvPipeline.COMPV5: None,
    ConvPipeline.COMPV6: "conv::compv6",
    ConvPipeline.COMP_ASYNC: None,
    ConvPipeline.BASIC_ASYNC_V1: None,
    ConvPipeline.WAVELET: None,
    ConvPipeline.TMA: None,
    ConvPipeline.PACKED: None,
    ConvPipeline.DIRECT: None,
}
EPILOGUES: Mapping[ConvEpilogue, str | None] = {
    ConvEpilogue.CSHUFFLE: "conv::cshuffle",
    ConvEpilogue.DEFAULT: "conv::direct",
}
SCHEDULERS: Mapping[ConvScheduler, str | None] = {
    ConvScheduler.INTRAWAVE: "ck_tile::GemmPipelineScheduler::Intrawave",
    ConvScheduler.INTERWAVE: "ck_tile::GemmPipelineScheduler::Interwave",
    ConvScheduler.COOPERATIVE: None,
    ConvScheduler.PINGPONG: None,
    ConvScheduler.DEFAULT: None,
}
SPECIALIZATIONS: Mapping[Specialization, tuple[str, str]] = {
    Specialization.DEFAULT: ("none", "KW_CONV_ANY"),
    Specialization.FILTER1X1_PAD0: ("filter1x1_pad0", "KW_CONV_FILTER_1X1_PAD_0"),
    Specialization.FILTER1X1_STRIDE1_PAD0: ("filter1x1_stride1_pad0", "KW_CONV_FILTER_1X1_STRIDE_1_PAD_0"),
    Specialization.FILTER3X3: ("filter3x3", "KW_CONV_FILTER_3X3"),
}
SOURCES = launcher_files("ck_tile", "convolution", "launch")
"""Launcher sources that a library with convolution kernels contains."""

TREES = ("hip_convolution", "hip_gemm", "abi")
"""Header trees: the pipelines are those of GEMM."""

SUM_SUFFIX = "_sum"
"""Suffix of the symbol of the device function that adds up slices."""

_ONE_WAVE = (ConvPipeline.COMPV3, ConvPipeline.COMPV4, ConvPipeline.COMPV6)
_Member = TypeVar("_Member")


def waves_per_simd(spec: GroupedConvSpec, arch: Arch) -> int:
    """The waves that a SIMD must hold at once, the second argument of ``__launch_bounds__``: they share registers.

    One where a wave needs all registers, else two, or one where LDS has no room for more.
    """
    if spec.pipeline in _ONE_WAVE or spec.double_smem_buffer:
        return 1
    waves = spec.wave.m * spec.wave.n * spec.wave.k
    return max(1, min(2, most_waves_per_simd(arch, lds_bytes(spec, arch.wave_size), waves)))


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """The symbols of the templates below ``templates/ck_tile``; KeyError for a member that the backend refuses."""
    spec = conv_spec(kernel)
    special, abi_special = SPECIALIZATIONS[spec.specialization]
    if spec.explicit_gemm:  # such images are matrices, whatever else the kernel is specialised for
        special, abi_special = SPECIALIZATIONS[Specialization.FILTER1X1_STRIDE1_PAD0]
    return {
        "element": _symbol(DTYPES, spec.dtype),
        "pipeline": _symbol(PIPELINES, spec.pipeline),
        "epilogue": _symbol(EPILOGUES, spec.epilogue),
        "scheduler": _symbol(SCHEDULERS, spec.scheduler),
        "specialization": special,
        "abi_specialization": abi_special,
        "abi_dtype": spec.dtype.c_name,
        "abi_op": OPS[spec.direction].c_name,
        "serves_bias": spec.bias or spec.activation is Activation.ANY,
        "serves_residual": spec.residual or spec.activation is Activation.ANY,
        "waves_per_simd": waves_per_simd(spec, arch),
        "function": f"{kernel.symbol}_conv",
        "sum": f"{kernel.symbol}{SUM_SUFFIX}",
        "facts": f"{kernel.symbol}_facts",
    }


def _symbol(table: Mapping[_Member, str | None], member: _Member) -> str:
    symbol = table.get(member)
    if symbol is None:
        raise KeyError(f"CK Tile has no symbol for {member!r}; validate the spec first")
    return symbol
