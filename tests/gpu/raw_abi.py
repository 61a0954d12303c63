"""Kernels through the C ABI, with the structs of the bindings but without the dispatcher."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from places import ORDINAL

from kernelwright.dispatch.core.native import KernelStruct, Launch, LibraryStruct
from kernelwright.problems.gemm.structs import (
    GemmArgs,
    GemmGroup,
    GemmProblem,
    GemmTraits,
    GroupedGemmProblem,
)

DTYPES = {"fp32": 1, "fp16": 2, "bf16": 3, "fp8": 4, "bf8": 5, "int8": 6, "int32": 7}
OK, INVALID_ARGUMENT, UNSUPPORTED, RUNTIME_MISSING = 0, 1, 2, 7


@dataclass(frozen=True)
class Kernel:
    pointer: int
    descriptor: KernelStruct
    table: LibraryStruct
    names: dict[int, str] = field(default_factory=lambda: {code: name for name, code in DTYPES.items()})

    @property
    def traits(self) -> GemmTraits:
        return GemmTraits.from_address(self.descriptor.traits)

    @property
    def name(self) -> str:
        return self.descriptor.name.decode()

    @property
    def layout(self) -> str:
        traits = self.traits
        return "".join("rc"[code] for code in (traits.layout_a, traits.layout_b, traits.layout_c))

    @property
    def dtypes(self) -> tuple[str, str, str, str]:
        traits = self.traits
        codes = (traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc)
        return tuple(self.names[code] for code in codes)  # type: ignore[return-value]

    def problem(
        self, m: int, n: int, k: int, lda: int = 0, ldb: int = 0, ldc: int = 0, alpha: float = 1.0, beta: float = 0.0
    ) -> GemmProblem:
        traits = self.traits
        return GemmProblem(
            *(ctypes.sizeof(GemmProblem), 1, traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc),
            *(traits.layout_a, traits.layout_b, traits.layout_c, 1, m, n, k),
            lda or (m if traits.layout_a else k),
            ldb or (k if traits.layout_b else n),
            ldc or n,
            *(alpha, beta, 1),
        )

    def grouped_problem(
        self, groups: ctypes.Array[GemmGroup], alpha: float = 1.0, beta: float = 0.0
    ) -> GroupedGemmProblem:
        traits = self.traits
        return GroupedGemmProblem(
            *(ctypes.sizeof(GroupedGemmProblem), 2, traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc),
            *(traits.layout_a, traits.layout_b, traits.layout_c, 0, len(groups), groups, alpha, beta),
        )

    def supports(self, problem: GemmProblem | GroupedGemmProblem) -> tuple[int, str]:
        text = ctypes.create_string_buffer(256)
        status = self.descriptor.supports(self.pointer, ctypes.addressof(problem), ctypes.addressof(text), 256)
        return status, text.value.decode()

    def plan(self, problem: GemmProblem | GroupedGemmProblem) -> ctypes.Array[ctypes.c_char]:
        storage = ctypes.create_string_buffer(self.descriptor.plan_bytes + 64)
        status = self.descriptor.plan(self.pointer, ctypes.addressof(problem), aligned(storage))
        if status != OK:
            raise RuntimeError(f"plan: status {status}: {self.last_error()}")
        return storage

    def launch(
        self, plan: ctypes.Array[ctypes.c_char], a: int, b: int, c: int, d: int, stream: int, device: int = ORDINAL
    ) -> int:
        where = Launch(ctypes.sizeof(Launch), device, stream, None, 0)
        args = GemmArgs(ctypes.sizeof(GemmArgs), 0, a, b, c, d)
        plan_at = aligned(plan)
        return int(self.descriptor.launch(self.pointer, plan_at, ctypes.addressof(where), ctypes.addressof(args)))

    def last_error(self) -> str:
        return bytes(self.table.last_error()).decode()


def aligned(storage: ctypes.Array[ctypes.c_char]) -> int:
    """The first address in the storage that is a multiple of 64."""
    return (ctypes.addressof(storage) + 63) // 64 * 64


class Library:
    def __init__(self, path: Path) -> None:
        self.handle = ctypes.CDLL(str(path))
        self.handle.kw_library_get.restype = ctypes.POINTER(LibraryStruct)
        self.table: LibraryStruct = self.handle.kw_library_get()[0]

    def __iter__(self) -> Iterator[Kernel]:
        for index in range(self.table.kernel_count):
            pointer = self.table.kernels[index]
            yield Kernel(ctypes.addressof(pointer.contents), pointer.contents, self.table)

    def check_device(self, device: int) -> tuple[int, str]:
        text = ctypes.create_string_buffer(256)
        status = self.table.check_device(device, ctypes.addressof(text), 256)
        return int(status), text.value.decode()
