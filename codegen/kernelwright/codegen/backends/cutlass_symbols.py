"""The C++ symbols of CUTLASS for the words of a spec; a word that is absent is refused by :mod:`..rules.cutlass`."""

from __future__ import annotations

from kernelwright.codegen.spec import Activation, DOp, DType, Epilogue, GemmSpec, Layout, Pipeline, Scheduler, StreamK

# fp32 operands are absent on purpose: the tensor cores would round them to tf32.
ELEMENTS: dict[DType, str] = {
    DType.FP16: "cutlass::half_t",
    DType.BF16: "cutlass::bfloat16_t",
    DType.FP8: "cutlass::float_e4m3_t",
    DType.BF8: "cutlass::float_e5m2_t",
    DType.INT8: "int8_t",
}
ACCUMULATORS: dict[DType, str] = {DType.FP32: "float", DType.INT32: "int32_t"}
OUTPUTS: dict[DType, str] = {
    DType.FP32: "float",
    DType.FP16: "cutlass::half_t",
    DType.BF16: "cutlass::bfloat16_t",
    DType.INT32: "int32_t",
}

_ROW = "cutlass::layout::RowMajor"
_COLUMN = "cutlass::layout::ColumnMajor"
LAYOUTS: dict[Layout, tuple[str, str]] = {
    Layout.RCR: (_ROW, _COLUMN),
    Layout.RRR: (_ROW, _ROW),
    Layout.CRR: (_COLUMN, _ROW),
    Layout.CCR: (_COLUMN, _COLUMN),
}

MAINLOOP_SCHEDULES: dict[Scheduler, str] = {
    Scheduler.COOPERATIVE: "cutlass::gemm::KernelTmaWarpSpecializedCooperative",
    Scheduler.PINGPONG: "cutlass::gemm::KernelTmaWarpSpecializedPingpong",
}
EPILOGUE_SCHEDULES: dict[Scheduler, str] = {
    Scheduler.COOPERATIVE: "cutlass::epilogue::TmaWarpSpecializedCooperative",
    Scheduler.PINGPONG: "cutlass::epilogue::TmaWarpSpecialized",
}
# Mainloop and epilogue of grouped kernels, whose operands are arrays of pointers.
GROUPED_SCHEDULES: dict[Scheduler, tuple[str, str]] = {
    Scheduler.COOPERATIVE: (
        "cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative",
        "cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative",
    ),
    Scheduler.PINGPONG: (
        "cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong",
        "cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong",
    ),
}
# For 8-bit floats wgmma's own accumulation over the whole K (as torch's use_fast_accum): promoting every few steps to
# separate fp32 registers spills at tiles worth having (858 bytes at 128x256x128).
FAST_ACCUMULATION = "FP8FastAccum"
# CUTLASS has that schedule for K-major operands alone.
FAST_ACCUMULATION_LAYOUTS = frozenset({Layout.RCR})
FAST_ACCUMULATION_DTYPES = frozenset({DType.FP8, DType.BF8})

ACTIVATIONS: dict[Activation, str] = {
    Activation.NONE: "none",
    Activation.RELU: "relu",
    Activation.GELU: "gelu",
    Activation.FAST_GELU: "fast_gelu",
    Activation.SILU: "silu",
    Activation.SIGMOID: "sigmoid",
    Activation.TANH: "hyperbolic_tangent",
}
COMBINATIONS: dict[DOp, str] = {DOp.ADD: "cutlass::plus", DOp.MULTIPLY: "cutlass::multiplies"}

WGMMA_ROWS = 64


def swapped(spec: GemmSpec) -> bool:
    """Does the kernel compute C^T = B^T A^T, so that wgmma's 64 rows lie along N? The warp tile says so."""
    warp = spec.warp_tile
    plain = (warp.m, warp.n) == (WGMMA_ROWS, spec.tile.n)
    return not plain and (warp.m, warp.n) == (spec.tile.m, WGMMA_ROWS)


_COMMON_COLUMNS = frozenset({8, 16, 24, 32, 64, 96, 128, 192, 256})


def all_shapes(spec: GemmSpec) -> bool:
    """Must CuTe know the rarer wgmma shapes? Without them it cuts a tile of 224 columns into seven of 32."""
    columns = spec.tile.m if swapped(spec) else spec.tile.n
    return columns not in _COMMON_COLUMNS


def cut(spec: GemmSpec) -> bool:
    """Do several workgroups share a tile along K?"""
    return spec.split_k or spec.stream_k is not StreamK.NONE


def tile_scheduler(spec: GemmSpec) -> str:
    """The CUTLASS tag of who works on which part of which tile."""
    return "cutlass::gemm::StreamKScheduler" if cut(spec) else "cutlass::gemm::PersistentScheduler"


PIPELINES = frozenset({Pipeline.TMA})
EPILOGUES = frozenset({Epilogue.TMA})

ABI_DTYPES: dict[DType, str] = {dtype: f"KW_{dtype.name}" for dtype in DType}
ABI_LAYOUTS = {"r": "KW_ROW_MAJOR", "c": "KW_COL_MAJOR"}
