"""Runs the kernels of a CPU library through the C ABI alone, for tests and benchmarks without a dispatcher."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.problems.gemm.structs import GemmArgs, GemmProblem, GemmTraits

OK, INVALID_ARGUMENT, UNSUPPORTED, WORKSPACE_TOO_SMALL = 0, 1, 2, 6
DTYPES = {"fp32": 1, "fp16": 2, "bf16": 3}
ROW, COLUMN = 0, 1

_U32, _PTR, _TEXT = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p


def _of(kind: Any, names: str) -> list[Any]:
    return [(name, kind) for name in names.split()]


class _Launch(ctypes.Structure):
    """``kw_launch``."""

    _fields_ = _of(_U32, "struct_size") + _of(ctypes.c_int32, "device") + _of(_PTR, "stream workspace")
    _fields_ += _of(ctypes.c_uint64, "workspace_bytes")


class _Kernel(ctypes.Structure):
    """``kw_kernel``."""

    _fields_ = _of(_U32, "struct_size abi_version op plan_bytes")
    _fields_ += _of(_TEXT, "name arch identity spec_json features") + _of(ctypes.POINTER(GemmTraits), "traits")
    _fields_ += _of(ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR, ctypes.c_size_t), "supports")
    _fields_ += _of(ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR), "workspace_size plan")
    _fields_ += _of(ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR, _PTR), "launch") + _of(_PTR, "extension")


class _Library(ctypes.Structure):
    """``kw_library``."""

    _fields_ = _of(_U32, "struct_size abi_version") + _of(_TEXT, "name") + _of(_PTR, "arch")
    _fields_ += _of(ctypes.POINTER(ctypes.POINTER(_Kernel)), "kernels") + _of(ctypes.c_uint64, "kernel_count")
    _fields_ += _of(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, _PTR, ctypes.c_size_t), "check_device")
    _fields_ += _of(ctypes.CFUNCTYPE(_TEXT), "last_error") + _of(
        ctypes.CFUNCTYPE(ctypes.c_int, _U32), "set_num_threads"
    )
    _fields_ += _of(ctypes.CFUNCTYPE(ctypes.c_int, _TEXT), "set_runtime")


def aligned_bytes(count: int, alignment: int = 256) -> Any:
    """An uninitialised uint8 array of ``count`` bytes at an aligned address."""
    raw = np.empty(count + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + count]


class CpuLibrary:
    """A loaded kernel library."""

    def __init__(self, path: Path) -> None:
        self._handle = ctypes.CDLL(str(path))
        self._handle.kw_library_get.restype = ctypes.POINTER(_Library)
        self._table = self._handle.kw_library_get().contents

    def __iter__(self) -> Iterator[CpuKernel]:
        for index in range(self._table.kernel_count):
            yield CpuKernel(self, self._table.kernels[index].contents)

    def check_device(self, device: int = 0) -> tuple[int, str]:
        """Return status and reason."""
        reason = ctypes.create_string_buffer(256)
        return self._table.check_device(device, ctypes.addressof(reason), len(reason)), reason.value.decode()

    def set_num_threads(self, threads: int) -> int:
        """Set the number of threads; returns the status."""
        return int(self._table.set_num_threads(threads))

    def set_runtime(self, path: str) -> int:
        """Set the runtime's path; returns the status."""
        return int(self._table.set_runtime(path.encode()))

    @property
    def last_error(self) -> str:
        """The last error of the calling thread."""
        return str(self._table.last_error().decode())


@dataclass(frozen=True)
class CpuKernel:
    """One descriptor of a library."""

    library: CpuLibrary
    descriptor: Any

    @property
    def name(self) -> str:
        """Readable name."""
        return str(self.descriptor.name.decode())

    @property
    def traits(self) -> Any:
        """The kernel's traits: dtype_a, layout_a, … as numbers of abi.h."""
        return self.descriptor.traits.contents

    def problem(
        self, m: int, n: int, k: int, *, alpha: float = 1, beta: float = 0, pads: tuple[int, int, int]
    ) -> GemmProblem:
        """Return a problem of the kernel's types; ``pads`` are added to the smallest leading dimensions of A, B, C."""
        t = self.traits
        lda = (k if t.layout_a == ROW else m) + pads[0]
        ldb = (n if t.layout_b == ROW else k) + pads[1]
        types = (t.dtype_a, t.dtype_b, t.dtype_c, t.dtype_acc, t.layout_a, t.layout_b, t.layout_c)
        return GemmProblem(ctypes.sizeof(GemmProblem), 1, *types, 1, m, n, k, lda, ldb, n + pads[2], alpha, beta, 1)

    def supports(self, problem: GemmProblem) -> tuple[int, str]:
        """Return status and reason."""
        reason = ctypes.create_string_buffer(256)
        status = self.descriptor.supports(
            ctypes.addressof(self.descriptor), ctypes.addressof(problem), ctypes.addressof(reason), len(reason)
        )
        return status, reason.value.decode()

    def plan(self, problem: GemmProblem) -> CpuPlan:
        """A plan with a workspace filled with 0xff (NaN in every dtype); RuntimeError if the problem is refused."""
        kernel, size = ctypes.addressof(self.descriptor), ctypes.c_uint64()
        storage = aligned_bytes(self.descriptor.plan_bytes, 64)
        status = self.descriptor.workspace_size(kernel, ctypes.addressof(problem), ctypes.addressof(size))
        status = status or self.descriptor.plan(kernel, ctypes.addressof(problem), storage.ctypes.data)
        if status != OK:
            raise RuntimeError(f"{self.name}: status {status}: {self.library.last_error}")
        workspace = aligned_bytes(size.value)
        workspace[:] = 0xFF
        return CpuPlan(self, storage, workspace)


@dataclass(frozen=True)
class CpuPlan:
    """One planned problem and its workspace, for one launch at a time."""

    kernel: CpuKernel
    storage: Any
    workspace: Any

    def launch(self, a: int, b: int, c: int, d: int, workspace_bytes: int | None = None, device: int = 0) -> int:
        """Launch with these addresses; returns the status."""
        size = self.workspace.size if workspace_bytes is None else workspace_bytes
        where = _Launch(ctypes.sizeof(_Launch), device, None, self.workspace.ctypes.data, size)
        args = GemmArgs(ctypes.sizeof(GemmArgs), 0, a, b, c, d)
        kernel, plan = ctypes.addressof(self.kernel.descriptor), self.storage.ctypes.data
        return int(self.kernel.descriptor.launch(kernel, plan, ctypes.addressof(where), ctypes.addressof(args)))
