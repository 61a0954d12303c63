"""Attention kernels through the C ABI, without the dispatcher: structs of kernelwright/attention.h, and launches."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from places import ORDINAL
from raw_abi import DTYPES, OK, Library, aligned

from kernelwright.dispatch.core.native import KernelStruct, Launch, LibraryStruct
from kernelwright.problems.attention.structs import AppendArgs as AppendArgs
from kernelwright.problems.attention.structs import AppendProblem as AppendProblem
from kernelwright.problems.attention.structs import AttentionProblem as Problem
from kernelwright.problems.attention.structs import AttentionStrides as Strides
from kernelwright.problems.attention.structs import AttentionTraits as Traits
from kernelwright.problems.attention.words import AttentionOp, Mask

MASKS = {one.value: one.number for one in Mask}
PART, COMBINE, APPEND = (
    one.number for one in (AttentionOp.ATTENTION_PART, AttentionOp.ATTENTION_COMBINE, AttentionOp.ATTENTION_APPEND)
)


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
    """Strides of a torch tensor with dimensions in ``order``: letters of request, head, row; the last is contiguous."""
    by_letter: Mapping[str, int] = dict(zip(order, tensor.stride(), strict=False))
    return Strides(by_letter.get("b", 0), by_letter.get("h", 0), by_letter.get("s", 0))
