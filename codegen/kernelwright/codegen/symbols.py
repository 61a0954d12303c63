"""C++ names of element types and activations: a table for each backend, from which operations take their part."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import COMPILED_ACTIVATIONS, Activation

CK_TILE_DTYPES: Mapping[DType, str] = {
    DType.FP32: "float",
    DType.FP16: "ck_tile::fp16_t",
    DType.BF16: "ck_tile::bf16_t",
    DType.FP8: "ck_tile::fp8_t",
    DType.BF8: "ck_tile::bf8_t",
    DType.INT8: "ck_tile::int8_t",
    DType.INT32: "ck_tile::int32_t",
}
CUTLASS_DTYPES: Mapping[DType, str] = {
    DType.FP32: "float",
    DType.FP16: "cutlass::half_t",
    DType.BF16: "cutlass::bfloat16_t",
    DType.FP8: "cutlass::float_e4m3_t",
    DType.BF8: "cutlass::float_e5m2_t",
    DType.INT8: "int8_t",
    DType.INT32: "int32_t",
}
CPU_DTYPES: Mapping[DType, str] = {dtype: str(dtype) for dtype in DType}
"""Names in kernelwright::cpu, which are those of specs."""

CPU_ACTIVATIONS: Mapping[Activation, str] = {
    activation: "no_activation" if activation is Activation.NONE else str(activation)
    for activation in COMPILED_ACTIVATIONS
}
CUDA_ACTIVATIONS: Mapping[Activation, str] = {
    activation: "hyperbolic_tangent" if activation is Activation.TANH else str(activation)
    for activation in COMPILED_ACTIVATIONS
}
"""Templates of kernelwright::cuda; ``tanh`` is CUDA's function."""


def part(table: Mapping[DType, str], *members: DType) -> dict[DType, str]:
    """Return a backend's names for some types: those that an operation supports."""
    return {member: table[member] for member in members}
