"""Enum → C++ symbol of the CPU kernels (dispatcher_cpp/include/tilewright/cpu), and which members are refused."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.codegen.spec import DType, Epilogue, Layout, Pipeline, Scheduler

ELEMENTS: Mapping[DType, str] = {DType.FP32: "fp32", DType.FP16: "fp16", DType.BF16: "bf16"}
"""Elements of A, B, C and D."""

ACCUMULATORS: Mapping[DType, str] = {DType.FP32: "fp32"}

OPERATIONS: Mapping[tuple[DType, int], str] = {
    (DType.FP32, 1): "widened_fma<fp32>",
    (DType.FP16, 1): "widened_fma<fp16>",
    (DType.BF16, 1): "widened_fma<bf16>",
    (DType.BF16, 2): "bf16_dot",
}
"""By dtype of A and B and the values of K that one instruction sums (warp_tile.k)."""

LAYOUTS: Mapping[Layout, tuple[str, str]] = {
    Layout.RCR: ("TW_ROW_MAJOR", "TW_COL_MAJOR"),
    Layout.RRR: ("TW_ROW_MAJOR", "TW_ROW_MAJOR"),
    Layout.CRR: ("TW_COL_MAJOR", "TW_ROW_MAJOR"),
    Layout.CCR: ("TW_COL_MAJOR", "TW_COL_MAJOR"),
}
"""tw_layout of A and B; C is row-major."""

PIPELINES = (Pipeline.PACKED,)
EPILOGUES = (Epilogue.DEFAULT,)
SCHEDULERS = (Scheduler.DEFAULT,)

FEATURES: Mapping[str, tuple[str, str]] = {"avx512_bf16": ("kAvx512Bf16", "avx512bf16")}
"""Feature of the architecture file → bit of tilewright::cpu::feature, compiler feature."""

VECTOR_REGISTERS: Mapping[str, int] = {"x86_64_v3": 16, "x86_64_v4": 32}
"""Architectural vector registers by compile target (psABI levels: ymm0-15, zmm0-31)."""

VECTOR_LANES: Mapping[str, int] = {"x86_64_v3": 8, "x86_64_v4": 16}
"""fp32 lanes of a vector register by compile target."""

LEVELS: Mapping[str, int] = {"x86_64_v3": 3, "x86_64_v4": 4}
"""The psABI level that a library's check_device asks for."""
