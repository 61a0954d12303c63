"""GEMM through CK Tile: the C++ symbols of its kernels and the values of their descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import (
    MAX_D_TENSORS,
    Activation,
    Epilogue,
    Pipeline,
    Scheduler,
    StreamK,
    gemm_spec,
)
from kernelwright.codegen.symbols import CK_TILE_DTYPES
from kernelwright.codegen.trees import launcher_files

# None: not in CK Tile (or this backend); constraints/ck_tile.py says why.
DTYPES = CK_TILE_DTYPES
LAYOUTS: Mapping[Layout, tuple[str, str] | None] = {
    Layout.RCR: ("row_major", "col_major"),
    Layout.RRR: ("row_major", "row_major"),
    Layout.CRR: ("col_major", "row_major"),
    Layout.CCR: ("col_major", "col_major"),
}
PIPELINES: Mapping[Pipeline, str | None] = {
    Pipeline.MEM: "kernelwright::hip::mem",
    Pipeline.COMPV3: "kernelwright::hip::compv3",
    Pipeline.COMPV4: "kernelwright::hip::compv4",
    Pipeline.COMPV6: "kernelwright::hip::compv6",
    Pipeline.COMP_ASYNC: "kernelwright::hip::comp_async",
    Pipeline.PRESHUFFLEV2: "kernelwright::hip::preshufflev2",
    Pipeline.NARROW: "kernelwright::hip::narrow",
    Pipeline.TMA: None,
    Pipeline.CP_ASYNC: None,
    Pipeline.PACKED: None,
}
EPILOGUES: Mapping[Epilogue, str | None] = {
    Epilogue.CSHUFFLE: "kernelwright::hip::cshuffle",
    Epilogue.DEFAULT: "kernelwright::hip::direct",
    Epilogue.TMA: None,
}
SCHEDULERS: Mapping[Scheduler, str | None] = {
    Scheduler.INTRAWAVE: "ck_tile::GemmPipelineScheduler::Intrawave",
    Scheduler.INTERWAVE: "ck_tile::GemmPipelineScheduler::Interwave",
    Scheduler.DEFAULT: "ck_tile::GemmPipelineScheduler::Default",
    Scheduler.COOPERATIVE: None,
    Scheduler.PINGPONG: None,
}
# The C++ types of d_op and activation have the names that the specs use.
STREAM_K: Mapping[StreamK, str | None] = {
    StreamK.NONE: "void",
    StreamK.LINEAR: "kernelwright::hip::linear",
    StreamK.TREE: "kernelwright::hip::tree",
}

SOURCES = launcher_files("ck_tile", "gemm", "conditions", "launch", "grouped", "shuffle")
TREES = ("hip_gemm", "gemm", "abi")
"""Launcher sources that a library with GEMM kernels contains."""

SUM_SUFFIX = "_sum"
"""Suffix of the symbol of the device function that adds up the slices of split-K."""

_Member = TypeVar("_Member")
_Symbol = TypeVar("_Symbol")
_ABI_LAYOUT = {"row_major": "KW_ROW_MAJOR", "col_major": "KW_COL_MAJOR"}


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """The symbols of the templates below ``templates/ck_tile``; KeyError for a member that the backend refuses."""
    spec = gemm_spec(kernel)
    layout_a, layout_b = _symbol(LAYOUTS, spec.layout)
    dtypes = {"a": spec.dtype_a, "b": spec.dtype_b, "c": spec.dtype_c, "acc": spec.dtype_acc}
    return {
        "dtype_a": _symbol(DTYPES, spec.dtype_a),
        "dtype_b": _symbol(DTYPES, spec.dtype_b),
        "dtype_d": _symbol(DTYPES, spec.dtype_c),
        "dtype_acc": _symbol(DTYPES, spec.dtype_acc),
        "layout_a": f"kernelwright::hip::{layout_a}",
        "layout_b": f"kernelwright::hip::{layout_b}",
        "pipeline": _symbol(PIPELINES, spec.pipeline),
        "epilogue": _symbol(EPILOGUES, spec.epilogue),
        "scheduler": _symbol(SCHEDULERS, spec.scheduler),
        "stream_k": _symbol(STREAM_K, spec.stream_k),
        "sums": not spec.grouped,
        "most_d": MAX_D_TENSORS if spec.activation is Activation.ANY else spec.num_d,
        "function": f"{kernel.symbol}_gemm",
        "sum": f"{kernel.symbol}{SUM_SUFFIX}",
        "facts": f"{kernel.symbol}_facts",
        **{f"abi_dtype_{operand}": f"KW_{dtype.upper()}" for operand, dtype in dtypes.items()},
        "abi_layout_a": _ABI_LAYOUT[layout_a],
        "abi_layout_b": _ABI_LAYOUT[layout_b],
        "family": "grouped" if spec.grouped else "gemm",
        "workgroups": arch.compute_units * spec.k_block_per_cu,
        "wave_size": arch.wave_size,
        "b_bytes": ELEMENT_BYTES[spec.dtype_b],
    }


def _symbol(table: Mapping[_Member, _Symbol | None], member: _Member) -> _Symbol:
    symbol = table.get(member)
    if symbol is None:
        raise KeyError(f"CK Tile has no symbol for {member!r}; validate the spec first")
    return symbol
