"""GEMM on CPUs: the C++ symbols of its kernels, and the members without one.

The kernels are in dispatcher_cpp/include/kernelwright/cpu.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.spec import (
    Activation,
    DOp,
    Epilogue,
    GemmSpec,
    Pipeline,
    Scheduler,
    StreamK,
    gemm_spec,
)
from kernelwright.codegen.symbols import CPU_ACTIVATIONS, CPU_DTYPES, part
from kernelwright.codegen.trees import launcher_files

ELEMENTS = part(CPU_DTYPES, DType.FP32, DType.FP16, DType.BF16, DType.INT32)
"""Elements of C and D."""

OUTPUTS: Mapping[DType, tuple[DType, ...]] = {
    DType.FP32: (DType.FP32, DType.FP16, DType.BF16),
    DType.INT32: (DType.INT32,),
}
"""Types that sums are converted to, by accumulator type."""

SUMS: Mapping[DType, DType] = {
    DType.FP32: DType.FP32,
    DType.FP16: DType.FP32,
    DType.BF16: DType.FP32,
    DType.INT8: DType.INT32,
}
"""Accumulator types by dtype of A and B."""

OPERATIONS: Mapping[tuple[DType, int], str] = {
    (DType.FP32, 1): "widened_fma<fp32>",
    (DType.FP16, 1): "widened_fma<fp16>",
    (DType.BF16, 1): "widened_fma<bf16>",
    (DType.BF16, 2): "bf16_dot",
    (DType.INT8, 2): "int16_dot",
    (DType.INT8, 4): "int8_dot",
    (DType.BF16, 32): "bf16_tiles",
    (DType.INT8, 64): "int8_tiles",
}
"""C++ operations by dtype of A and B and values of K that one instruction sums (warp_tile.k); the last two are AMX."""

TILES: Mapping[tuple[DType, int], int] = {(DType.BF16, 32): 2, (DType.INT8, 64): 4}
"""Operations on AMX tiles of 16 rows by 16 units of 4 bytes, and the number of K values in a unit."""

LAYOUTS: Mapping[Layout, tuple[str, str]] = {
    Layout.RCR: ("KW_ROW_MAJOR", "KW_COL_MAJOR"),
    Layout.RRR: ("KW_ROW_MAJOR", "KW_ROW_MAJOR"),
    Layout.CRR: ("KW_COL_MAJOR", "KW_ROW_MAJOR"),
    Layout.CCR: ("KW_COL_MAJOR", "KW_COL_MAJOR"),
}
"""kw_layout values of A and B; C is row-major."""

D_OPS: Mapping[DOp, str] = {DOp.ADD: "KW_D_ADD", DOp.MULTIPLY: "KW_D_MULTIPLY"}

ACTIVATIONS = CPU_ACTIVATIONS

STREAM_K: Mapping[StreamK, str] = {
    StreamK.NONE: "KW_STREAM_K_NONE",
    StreamK.LINEAR: "KW_STREAM_K_LINEAR",
    StreamK.TREE: "KW_STREAM_K_TREE",
}

SOURCES = launcher_files("cpu", "gemm", "launch")
TREES = ("cpu_gemm",)
"""Launcher sources that a library with GEMM kernels contains, besides the driver of all CPU kernels."""

MAX_SPLIT_K = 64
"""The most slices that a split-K kernel sums."""

SHIFTED = frozenset({(DType.INT8, 4)})
"""Operations that keep an extra row of sums, which corrects for an unsigned operand, and a constant."""

PIPELINES = (Pipeline.PACKED, Pipeline.PRESHUFFLEV2)
EPILOGUES = (Epilogue.DEFAULT,)
SCHEDULERS = (Scheduler.DEFAULT,)


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cpu/gemm.hpp.jinja``; the spec must have passed the rules."""
    spec = gemm_spec(kernel)
    layout_a, layout_b = LAYOUTS[spec.layout]
    features = gemm_section(arch).features(spec.dtype_key, spec.warp_tile.k)
    return {
        "operation": OPERATIONS[spec.dtype_a, spec.warp_tile.k],
        "epilogue": _epilogue(spec),
        "layout_a": layout_a,
        "layout_b": layout_b,
        "required_features": " | ".join(map(_enumerator, features)) or "kNoFeature",
        "features": " ".join(features),
        "max_split_k": MAX_SPLIT_K if spec.split_k else 1,
        "stream_k": STREAM_K[spec.stream_k],
    }


def _enumerator(feature: str) -> str:
    """Return the name of kernelwright::cpu::feature for an architecture file's feature: kAvx512Bf16 for avx512_bf16."""
    return "k" + "".join(part.capitalize() for part in feature.split("_"))


def _epilogue(spec: GemmSpec) -> str:
    element = ELEMENTS[spec.dtype_c]
    if spec.activation is Activation.ANY:
        return f"any_epilogue<{element}>"
    if not spec.fused:
        return f"epilogue<{element}>"
    return f"epilogue<{element}, {spec.num_d}, {D_OPS[spec.d_op]}, {ACTIVATIONS[spec.activation]}>"
