"""The C ABI through ctypes alone: what a GEMM launch costs and does without the dispatcher."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DTYPES = {"fp32": 1, "fp16": 2, "bf16": 3, "fp8": 4, "bf8": 5, "int8": 6, "int32": 7}
OK, INVALID_ARGUMENT, UNSUPPORTED, RUNTIME_MISSING = 0, 1, 2, 7
_U32, _I64, _F64, _PTR, _TEXT = ctypes.c_uint32, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_char_p
_AXES = ("m", "n", "k")


class Problem(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, _U32) for name in ("layout_a", "layout_b", "layout_c", "split_k")],
        *[(name, _I64) for name in ("m", "n", "k", "lda", "ldb", "ldc")],
        *[(name, _F64) for name in ("alpha", "beta")],
        *[(name, _I64) for name in ("batch", "stride_a", "stride_b", "stride_c")],
        *[(name, _U32) for name in ("num_d", "d_op", "activation", "reserved")],
        *[(name, _I64 * 4) for name in ("ld_multi_d", "stride_multi_d")],
        ("b_format", ctypes.c_uint64),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("struct_size", _U32),
        ("device", ctypes.c_int32),
        ("stream", _PTR),
        ("workspace", _PTR),
        ("workspace_bytes", ctypes.c_uint64),
    ]


class Args(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "reserved")],
        *[(name, _PTR) for name in ("a", "b", "c", "d")],
        ("multi_d", _PTR * 4),
    ]


class Group(ctypes.Structure):
    _fields_ = [(name, _I64) for name in ("m", "n", "k", "lda", "ldb", "ldc")]


class GroupedProblem(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, _U32) for name in ("layout_a", "layout_b", "layout_c", "reserved")],
        ("group_count", _I64),
        ("groups", ctypes.POINTER(Group)),
        *[(name, _F64) for name in ("alpha", "beta")],
    ]


class GroupedArgs(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "reserved")],
        ("group_count", _I64),
        ("groups", ctypes.POINTER(Group)),
        *[(name, ctypes.POINTER(_PTR)) for name in "abcd"],
    ]


class Traits(ctypes.Structure):
    _fields_ = [
        (name, _U32)
        for name in (
            *("struct_size", "dtype_a", "dtype_b", "dtype_c", "dtype_acc", "layout_a", "layout_b", "layout_c"),
            *(f"{kind}_{axis}" for kind in ("tile", "wave", "warp_tile", "pad") for axis in _AXES),
            *("persistent", "max_split_k", "num_d", "d_op", "activation", "batched", "stream_k"),
        )
    ] + [("cluster_m", ctypes.c_uint16), ("cluster_n", ctypes.c_uint16), ("b_format", ctypes.c_uint64)]


class Descriptor(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "abi_version", "op", "plan_bytes")],
        *[(name, _TEXT) for name in ("name", "arch", "identity", "spec_json", "features")],
        ("traits", ctypes.POINTER(Traits)),
        ("supports", ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR, ctypes.c_size_t)),
        ("workspace_size", ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR)),
        ("plan", ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR)),
        ("launch", ctypes.CFUNCTYPE(ctypes.c_int, _PTR, _PTR, _PTR, _PTR)),
        ("extension", _PTR),
    ]


class Table(ctypes.Structure):
    _fields_ = [
        *[(name, _U32) for name in ("struct_size", "abi_version")],
        ("name", _TEXT),
        ("arch", _PTR),
        ("kernels", ctypes.POINTER(ctypes.POINTER(Descriptor))),
        ("kernel_count", ctypes.c_uint64),
        ("check_device", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, _PTR, ctypes.c_size_t)),
        ("last_error", ctypes.CFUNCTYPE(_TEXT)),
        ("set_num_threads", ctypes.CFUNCTYPE(ctypes.c_int, _U32)),
        ("set_runtime", ctypes.CFUNCTYPE(ctypes.c_int, _TEXT)),
    ]


@dataclass(frozen=True)
class Kernel:
    pointer: int
    descriptor: Descriptor
    table: Table
    names: dict[int, str] = field(default_factory=lambda: {code: name for name, code in DTYPES.items()})

    @property
    def name(self) -> str:
        return self.descriptor.name.decode()

    @property
    def layout(self) -> str:
        traits = self.descriptor.traits[0]
        return "".join("rc"[code] for code in (traits.layout_a, traits.layout_b, traits.layout_c))

    @property
    def dtypes(self) -> tuple[str, str, str, str]:
        traits = self.descriptor.traits[0]
        codes = (traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc)
        return tuple(self.names[code] for code in codes)  # type: ignore[return-value]

    def problem(
        self, m: int, n: int, k: int, lda: int = 0, ldb: int = 0, ldc: int = 0, alpha: float = 1.0, beta: float = 0.0
    ) -> Problem:
        traits = self.descriptor.traits[0]
        return Problem(
            *(ctypes.sizeof(Problem), 1, traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc),
            *(traits.layout_a, traits.layout_b, traits.layout_c, 1, m, n, k),
            lda or (m if traits.layout_a else k),
            ldb or (k if traits.layout_b else n),
            ldc or n,
            *(alpha, beta, 1),
        )

    def grouped_problem(self, groups: ctypes.Array[Group], alpha: float = 1.0, beta: float = 0.0) -> GroupedProblem:
        traits = self.descriptor.traits[0]
        return GroupedProblem(
            *(ctypes.sizeof(GroupedProblem), 2, traits.dtype_a, traits.dtype_b, traits.dtype_c, traits.dtype_acc),
            *(traits.layout_a, traits.layout_b, traits.layout_c, 0, len(groups), groups, alpha, beta),
        )

    def supports(self, problem: Problem | GroupedProblem) -> tuple[int, str]:
        text = ctypes.create_string_buffer(256)
        status = self.descriptor.supports(self.pointer, ctypes.addressof(problem), ctypes.addressof(text), 256)
        return status, text.value.decode()

    def plan(self, problem: Problem | GroupedProblem) -> ctypes.Array[ctypes.c_char]:
        storage = ctypes.create_string_buffer(self.descriptor.plan_bytes + 64)
        status = self.descriptor.plan(self.pointer, ctypes.addressof(problem), aligned(storage))
        if status != OK:
            raise RuntimeError(f"plan: status {status}: {self.last_error()}")
        return storage

    def launch(
        self, plan: ctypes.Array[ctypes.c_char], a: int, b: int, c: int, d: int, stream: int, device: int = 0
    ) -> int:
        where = Launch(ctypes.sizeof(Launch), device, stream, None, 0)
        args = Args(ctypes.sizeof(Args), 0, a, b, c, d)
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
        self.handle.kw_library_get.restype = ctypes.POINTER(Table)
        self.table: Table = self.handle.kw_library_get()[0]

    def __iter__(self) -> Iterator[Kernel]:
        for index in range(self.table.kernel_count):
            pointer = self.table.kernels[index]
            yield Kernel(ctypes.addressof(pointer.contents), pointer.contents, self.table)

    def check_device(self, device: int) -> tuple[int, str]:
        text = ctypes.create_string_buffer(256)
        status = self.table.check_device(device, ctypes.addressof(text), 256)
        return int(status), text.value.decode()
