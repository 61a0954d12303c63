"""Enum → C++ symbol of the CPU kernels (dispatcher_cpp/include/kernelwright/cpu), and which members are refused."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.codegen.spec import Activation, DOp, DType, Epilogue, Layout, Pipeline, Scheduler, StreamK

ELEMENTS: Mapping[DType, str] = {DType.FP32: "fp32", DType.FP16: "fp16", DType.BF16: "bf16", DType.INT32: "int32"}
"""Elements of C and D."""

OUTPUTS: Mapping[DType, tuple[DType, ...]] = {
    DType.FP32: (DType.FP32, DType.FP16, DType.BF16),
    DType.INT32: (DType.INT32,),
}
"""By what products are summed in: what sums are converted to."""

SUMS: Mapping[DType, DType] = {
    DType.FP32: DType.FP32,
    DType.FP16: DType.FP32,
    DType.BF16: DType.FP32,
    DType.INT8: DType.INT32,
}
"""By dtype of A and B: what their products are summed in."""

OPERATIONS: Mapping[tuple[DType, int], str] = {
    (DType.FP32, 1): "widened_fma<fp32>",
    (DType.FP16, 1): "widened_fma<fp16>",
    (DType.BF16, 1): "widened_fma<bf16>",
    (DType.BF16, 2): "bf16_dot",
    (DType.INT8, 2): "int16_dot",
    (DType.INT8, 4): "int8_dot",
}
"""By dtype of A and B and the values of K that one instruction sums (warp_tile.k)."""

LAYOUTS: Mapping[Layout, tuple[str, str]] = {
    Layout.RCR: ("KW_ROW_MAJOR", "KW_COL_MAJOR"),
    Layout.RRR: ("KW_ROW_MAJOR", "KW_ROW_MAJOR"),
    Layout.CRR: ("KW_COL_MAJOR", "KW_ROW_MAJOR"),
    Layout.CCR: ("KW_COL_MAJOR", "KW_COL_MAJOR"),
}
"""kw_layout of A and B; C is row-major."""

D_OPS: Mapping[DOp, str] = {DOp.ADD: "KW_D_ADD", DOp.MULTIPLY: "KW_D_MULTIPLY"}

ACTIVATIONS: Mapping[Activation, str] = {
    Activation.NONE: "no_activation",
    Activation.RELU: "relu",
    Activation.GELU: "gelu",
    Activation.FAST_GELU: "fast_gelu",
    Activation.SILU: "silu",
    Activation.SIGMOID: "sigmoid",
    Activation.TANH: "tanh",
}

STREAM_K: Mapping[StreamK, str] = {
    StreamK.NONE: "KW_STREAM_K_NONE",
    StreamK.LINEAR: "KW_STREAM_K_LINEAR",
    StreamK.TREE: "KW_STREAM_K_TREE",
}

MAX_SPLIT_K = 64
"""Slices that a split-K kernel sums at most."""

SHIFTED = frozenset({(DType.INT8, 4)})
"""Operations that keep a further row of sums, which corrects for an operand without sign, and a constant."""

PIPELINES = (Pipeline.PACKED, Pipeline.PRESHUFFLEV2)
EPILOGUES = (Epilogue.DEFAULT,)
SCHEDULERS = (Scheduler.DEFAULT,)

FEATURES: Mapping[str, tuple[str, str]] = {
    "avx512_bf16": ("kAvx512Bf16", "avx512bf16"),
    "avx512_vnni": ("kAvx512Vnni", "avx512vnni"),
}
"""Feature of the architecture file → bit of kernelwright::cpu::feature, compiler feature."""

VECTOR_REGISTERS: Mapping[str, int] = {"x86_64_v3": 16, "x86_64_v4": 32}
"""Architectural vector registers by compile target (psABI levels: ymm0-15, zmm0-31)."""

VECTOR_LANES: Mapping[str, int] = {"x86_64_v3": 8, "x86_64_v4": 16}
"""fp32 lanes of a vector register by compile target."""

LEVELS: Mapping[str, int] = {"x86_64_v3": 3, "x86_64_v4": 4}
"""The psABI level that a library's check_device asks for."""
