"""GEMM through CUTLASS: its C++ symbols for the words of a spec. The rules refuse words without one."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import (
    MAX_D_TENSORS,
    Activation,
    DOp,
    Epilogue,
    GemmSpec,
    Pipeline,
    Scheduler,
    StreamK,
    gemm_spec,
)
from kernelwright.codegen.symbols import CUDA_ACTIVATIONS, CUTLASS_DTYPES, part
from kernelwright.codegen.trees import launcher_files

SOURCES = launcher_files("cutlass", "gemm", "launch")
TREES = ("cuda_src_gemm",)
"""Launcher sources that a library with GEMM kernels contains."""

MAX_SPLIT_K = 32
"""The most slices that a split-K kernel sums."""

# fp32 operands are absent on purpose: the tensor cores would round them to tf32.
ELEMENTS = part(CUTLASS_DTYPES, DType.FP16, DType.BF16, DType.FP8, DType.BF8, DType.INT8)
ACCUMULATORS = part(CUTLASS_DTYPES, DType.FP32, DType.INT32)
OUTPUTS = part(CUTLASS_DTYPES, DType.FP32, DType.FP16, DType.BF16, DType.INT32)

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
# 8-bit floats use wgmma's own accumulation over the whole K (like torch's use_fast_accum): promoting every few steps to
# separate fp32 registers spills at useful tiles (858 bytes at 128x256x128).
FAST_ACCUMULATION = "FP8FastAccum"
# CUTLASS has that schedule for K-major operands only.
FAST_ACCUMULATION_LAYOUTS = frozenset({Layout.RCR})
FAST_ACCUMULATION_DTYPES = frozenset({DType.FP8, DType.BF8})

ACTIVATIONS = {**CUDA_ACTIVATIONS, Activation.ANY: "any"}
COMBINATIONS: dict[DOp, str] = {DOp.ADD: "cutlass::plus", DOp.MULTIPLY: "cutlass::multiplies"}

WGMMA_ROWS = 64


def swapped(spec: GemmSpec) -> bool:
    """Whether the kernel computes C^T = B^T A^T, so that wgmma's 64 rows lie along N, as the warp tile says."""
    warp = spec.warp_tile
    plain = (warp.m, warp.n) == (WGMMA_ROWS, spec.tile.n)
    return not plain and (warp.m, warp.n) == (spec.tile.m, WGMMA_ROWS)


_COMMON_COLUMNS = frozenset({8, 16, 24, 32, 64, 96, 128, 192, 256})


def all_shapes(spec: GemmSpec) -> bool:
    """Whether CuTe must know the rarer wgmma shapes. Without them it cuts a tile of 224 columns into seven of 32."""
    columns = spec.tile.m if swapped(spec) else spec.tile.n
    return columns not in _COMMON_COLUMNS


def cut(spec: GemmSpec) -> bool:
    """Whether several workgroups share a tile along K."""
    return spec.split_k or spec.stream_k is not StreamK.NONE


def tile_scheduler(spec: GemmSpec) -> str:
    """Return the tag of the tile scheduler: CUTLASS's, or that of ``cuda/gemm/split_k.hpp``."""
    if spec.split_k:
        return "kernelwright::cuda::split_k_scheduler"
    return "cutlass::gemm::StreamKScheduler" if cut(spec) else "cutlass::gemm::PersistentScheduler"


# Epilogues and schedulers by pipeline. Kernels whose threads copy operands themselves have one of each.
PIPELINES: Mapping[Pipeline, tuple[Epilogue, tuple[Scheduler, ...]]] = {
    Pipeline.TMA: (Epilogue.TMA, tuple(MAINLOOP_SCHEDULES)),
    Pipeline.CP_ASYNC: (Epilogue.DEFAULT, (Scheduler.DEFAULT,)),
}

ABI_DTYPES: dict[DType, str] = {dtype: f"KW_{dtype.name}" for dtype in DType}
ABI_LAYOUTS = {"r": "KW_ROW_MAJOR", "c": "KW_COL_MAJOR"}


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cutlass/gemm.hpp.jinja``; the spec must have passed the rules."""
    spec = gemm_spec(kernel)
    layout_a, layout_b = LAYOUTS[spec.layout]
    copied = spec.pipeline is Pipeline.CP_ASYNC
    return {
        "copied": copied,
        "element_a": ELEMENTS[spec.dtype_a],
        "element_b": ELEMENTS[spec.dtype_b],
        "element_c": OUTPUTS[spec.dtype_c],
        "element_acc": ACCUMULATORS[spec.dtype_acc],
        "layout_a": layout_a,
        "layout_b": layout_b,
        "mainloop_schedule": "" if copied else _mainloop_schedule(spec),
        "epilogue_schedule": "" if copied else _epilogue_schedule(spec),
        "swap": swapped(spec),
        "all_shapes": all_shapes(spec),
        "cut": cut(spec),
        "tile_scheduler": tile_scheduler(spec),
        "activation": ACTIVATIONS[spec.activation],
        "num_d": MAX_D_TENSORS if spec.activation is Activation.ANY else spec.num_d,
        "combination": COMBINATIONS[spec.d_op],
        "max_split_k": MAX_SPLIT_K if spec.split_k else 1,
        "abi_dtypes": [ABI_DTYPES[dtype] for dtype in (spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc)],
        "abi_layouts": [ABI_LAYOUTS[letter] for letter in spec.layout],
    }


def _mainloop_schedule(spec: GemmSpec) -> str:
    schedule = MAINLOOP_SCHEDULES[spec.scheduler]
    if spec.grouped:
        schedule = GROUPED_SCHEDULES[spec.scheduler][0]
    fast = spec.dtype_a in FAST_ACCUMULATION_DTYPES and spec.layout in FAST_ACCUMULATION_LAYOUTS
    return schedule + FAST_ACCUMULATION if fast else schedule


def _epilogue_schedule(spec: GemmSpec) -> str:
    if spec.grouped:
        return GROUPED_SCHEDULES[spec.scheduler][1]
    return EPILOGUE_SCHEDULES[spec.scheduler]
