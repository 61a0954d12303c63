"""Attention kernels through the C ABI, without the dispatcher: structs of kernelwright/attention.h, and launches."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from places import ORDINAL
from raw_abi import DTYPES, OK, Library, aligned

from kernelwright.dispatch.core.native import KernelStruct, Launch, LibraryStruct

MASKS = {"none": 0, "top_left": 1, "bottom_right": 2, "generic": 3}
PART, COMBINE, APPEND = 34, 35, 36


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Strides(ctypes.Structure):
    _fields_ = _fields(ctypes.c_int64, "request head row")


class Problem(ctypes.Structure):
    """kw_attention_problem."""

    _fields_ = [
        *_fields(
            ctypes.c_uint32, "struct_size op version group dtype_q dtype_kv dtype_o dtype_bias mask bias lse sink"
        ),
        *_fields(ctypes.c_uint32, "dropout random_bytes kv_lengths qscale page_table page_layout dbias deterministic"),
        *_fields(ctypes.c_uint32, "num_splits leaves_splits dq_slices reserved"),
        *_fields(ctypes.c_int64, "batch heads_q heads_kv hdim_q hdim_v max_seqlen_q max_seqlen_k total_q total_k"),
        *_fields(ctypes.c_int64, "window_left window_right min_seqlen_q pages page_size page_table_stride"),
        *_fields(ctypes.c_int64, "slopes_stride scale_block_q scale_block_k"),
        *_fields(ctypes.c_double, "scale soft_cap dropout_p"),
        *_fields(Strides, "q k v o bias_strides d_o dq dk dv dbias_strides"),
    ]


class Args(ctypes.Structure):
    """kw_attention_args."""

    _fields_ = [
        *_fields(ctypes.c_uint32, "struct_size reserved"),
        *_fields(ctypes.c_void_p, "q k v o bias sinks lse random_bytes cu_seqlens_q cu_seqlens_k seqlens_k page_table"),
        *_fields(ctypes.c_void_p, "page_indptr last_page_lengths descale_q descale_k descale_v scale_o"),
        *_fields(ctypes.c_uint64, "seed offset"),
        *_fields(ctypes.c_void_p, "o_splits lse_splits d_o d dq dk dv dbias dq_sums"),
    ]


class AppendProblem(ctypes.Structure):
    """kw_append_problem."""

    _fields_ = [
        *_fields(ctypes.c_uint32, "struct_size op version dtype dtype_rotary rope rotates_q page_table page_layout"),
        *_fields(ctypes.c_uint32, "reserved"),
        *_fields(ctypes.c_int64, "batch heads_q heads_kv hdim_q hdim_v seqlen_q seqlen_new capacity pages page_size"),
        *_fields(ctypes.c_int64, "page_table_stride rotary_dim rotary_places"),
        *_fields(Strides, "q q_out k v k_cache v_cache"),
    ]


class AppendArgs(ctypes.Structure):
    """kw_append_args."""

    _fields_ = [
        *_fields(ctypes.c_uint32, "struct_size reserved"),
        *_fields(ctypes.c_void_p, "q q_out k v k_cache v_cache seqlens_k page_table cos sin"),
    ]


class Traits(ctypes.Structure):
    """kw_attention_traits."""

    _fields_ = [
        *_fields(
            ctypes.c_uint32, "struct_size family dtype_q dtype_kv dtype_o dtype_bias hdim_q hdim_v vector_q vector_v"
        ),
        *_fields(
            ctypes.c_uint32, "pad_s pad_sk pad_d pad_dv tile_m0 tile_n0 tile_k0 tile_n1 tile_k1 groups masks biases"
        ),
        *_fields(ctypes.c_uint32, "lses sinks dropouts random_bytes soft_caps kv_lengths dbiases deterministics"),
        *_fields(ctypes.c_uint32, "min_seqlens_q qscales page_tables page_layouts page_size ropes max_splits"),
        *_fields(ctypes.c_uint32, "leaves_splits leaves_dq max_seqlen_q max_group threads blocks_per_cu few_blocks"),
        *_fields(ctypes.c_uint32, "selection_rank packs_heads work_percent"),
    ]


def problem(op: int = PART, **values: Any) -> Problem:
    """A problem with what a problem does not use at 0, windows at -1, one split."""
    made = Problem(ctypes.sizeof(Problem), op, 1, window_left=-1, window_right=-1, num_splits=1)
    for name, value in values.items():
        setattr(made, name, value)
    return made


class AttentionKernel:
    """A kernel of a library."""

    def __init__(self, pointer: int, descriptor: KernelStruct, table: LibraryStruct) -> None:
        self.pointer, self.descriptor, self.table = pointer, descriptor, table
        self.traits = Traits.from_address(descriptor.traits)
        assert self.traits.struct_size == ctypes.sizeof(Traits)
        self.name = descriptor.name.decode()
        self.dtype = {code: name for name, code in DTYPES.items()}[self.traits.dtype_kv]

    def supports(self, asked: ctypes.Structure) -> str:
        """Why not; nothing if it does."""
        text = ctypes.create_string_buffer(256)
        status = self.descriptor.supports(self.pointer, ctypes.addressof(asked), ctypes.addressof(text), 256)
        return "" if status == OK else text.value.decode()

    def workspace_bytes(self, asked: ctypes.Structure) -> int:
        """Bytes of workspace."""
        size = ctypes.c_uint64()
        self._check(self.descriptor.workspace_size(self.pointer, ctypes.addressof(asked), ctypes.addressof(size)))
        return int(size.value)

    def plan(self, asked: ctypes.Structure) -> ctypes.Array[ctypes.c_char]:
        """A plan that launches may share."""
        storage = ctypes.create_string_buffer(self.descriptor.plan_bytes + 64)
        self._check(self.descriptor.plan(self.pointer, ctypes.addressof(asked), aligned(storage)))
        return storage

    def launch(
        self, plan: ctypes.Array[ctypes.c_char], args: ctypes.Structure, stream: int, workspace: int, nbytes: int
    ) -> None:
        """RuntimeError, with the library's words, for a status other than 0."""
        where = Launch(ctypes.sizeof(Launch), ORDINAL, stream, workspace or None, nbytes)
        self._check(
            self.descriptor.launch(self.pointer, aligned(plan), ctypes.addressof(where), ctypes.addressof(args))
        )

    def _check(self, status: int) -> None:
        if status != OK:
            raise RuntimeError(f"{self.name}: status {status}: {bytes(self.table.last_error()).decode()}")


def kernels(path: Path) -> Iterator[AttentionKernel]:
    """The attention kernels of a library."""
    library = Library(path)
    for kernel in library:
        if 32 <= kernel.descriptor.op < 48:
            yield AttentionKernel(kernel.pointer, kernel.descriptor, kernel.table)


def strides(tensor: Any, order: str) -> Strides:
    """Of a torch tensor whose dimensions are ``order``: letters of request, head, row; the last one is contiguous."""
    found: Mapping[str, int] = dict(zip(order, tensor.stride(), strict=False))
    return Strides(found.get("b", 0), found.get("h", 0), found.get("s", 0))
