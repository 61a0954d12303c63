"""Traits of kernels, which a library need not be built for."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.operations.convolution import cutlass
from kernelwright.codegen.operations.convolution.rules.hip_sizes import MAX_SPLIT_K
from kernelwright.codegen.operations.convolution.rules.structs import Traits
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec
from kernelwright.problems.convolution.description import Specialization


def traits_of(spec: GroupedConvSpec, backend: str) -> Traits:
    """What descriptors of the backend say of a kernel."""
    dtype, (tile, wave, warp) = spec.dtype, (spec.tile, spec.wave, spec.warp_tile)
    vector, pad = spec.vector, spec.pad
    any_epilogue = spec.activation is Activation.ANY
    return Traits(
        dtype, dtype, dtype, DType.FP32, spec.layout, tile.m, tile.n, tile.k, wave.m, wave.n, wave.k,
        warp.m, warp.n, warp.k, int(pad.m), int(pad.n), int(pad.k), vector.a, vector.b, vector.c,
        specialization=_special(spec), depthwise=spec.depthwise, max_split_k=_max_split_k(spec, backend),
        bias=spec.bias or any_epilogue, residual=spec.residual or any_epilogue, activation=spec.activation,
    )  # fmt: skip


def _special(spec: GroupedConvSpec) -> Specialization:
    """Matrices are what such images are, whatever else the kernel is specialised for."""
    return Specialization.FILTER1X1_STRIDE1_PAD0 if spec.explicit_gemm else spec.specialization


def _max_split_k(spec: GroupedConvSpec, backend: str) -> int:
    """The most slices that a kernel sums; those of CPUs sum in one."""
    if spec.direction is not Direction.BACKWARD_WEIGHT or backend == "cpu":
        return 1
    if backend == "ck_tile":
        return MAX_SPLIT_K if spec.two_stage else 1
    return cutlass.MAX_SPLIT_K
