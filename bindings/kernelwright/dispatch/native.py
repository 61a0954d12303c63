"""The C ABI in ctypes: structs, the functions of libkernelwright.so (loaded on first use), statuses as exceptions."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from importlib import resources
from typing import Any

from kernelwright.dispatch import errors

ABI_VERSION = 3
MAX_D = 4  # D tensors of one problem
DISPATCHER_VERSION = 2
OP_GEMM, OP_GROUPED_GEMM = 1, 2
BACKENDS = {1: "cpu", 2: "hip", 3: "cuda"}

CHECK_ON_ADD, CHECK_ON_LAUNCH, CHECK_NEVER = range(3)
SELECT_ANALYTIC, SELECT_FIRST_FIT, SELECT_EXPLICIT, SELECT_CALLBACK = range(4)

__all__ = ["byref", "sizeof"]


class GemmProblem(ctypes.Structure):
    """``kw_gemm_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, c_uint32) for name in ("layout_a", "layout_b", "layout_c", "split_k")],
        *[(name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")],
        ("alpha", c_double),
        ("beta", c_double),
        *[(name, ctypes.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c")],
        *[(name, c_uint32) for name in ("num_d", "d_op", "activation", "reserved")],
        *[(name, ctypes.c_int64 * MAX_D) for name in ("ld_multi_d", "stride_multi_d")],
        ("b_format", c_uint64),
    ]


class Launch(ctypes.Structure):
    """``kw_launch``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("stream", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
    ]


class GemmArgs(ctypes.Structure):
    """``kw_gemm_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("a", "b", "c", "d")],
        ("multi_d", c_void_p * MAX_D),
    ]


class GemmGroup(ctypes.Structure):
    """``kw_gemm_group``."""

    _fields_ = [(name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")]


class GroupedGemmProblem(ctypes.Structure):
    """``kw_grouped_gemm_problem``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")],
        *[(name, c_uint32) for name in ("layout_a", "layout_b", "layout_c", "reserved")],
        ("group_count", ctypes.c_int64),
        ("groups", POINTER(GemmGroup)),
        ("alpha", c_double),
        ("beta", c_double),
    ]


class GroupedGemmArgs(ctypes.Structure):
    """``kw_grouped_gemm_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group_count", ctypes.c_int64),
        ("groups", POINTER(GemmGroup)),
        *[(name, POINTER(c_void_p)) for name in ("a", "b", "c", "d")],
    ]


class GemmExtension(ctypes.Structure):
    """``kw_gemm_extension``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        *[(name, c_void_p) for name in ("shuffle_b_bytes", "shuffle_b")],
    ]


class KernelStruct(ctypes.Structure):
    """``kw_kernel``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "abi_version", "op", "plan_bytes")],
        *[(name, c_char_p) for name in ("name", "arch", "identity", "spec_json", "features")],
        *[(name, c_void_p) for name in ("traits", "supports", "workspace_size", "plan", "launch")],
        ("extension", c_void_p),
    ]


class ArchStruct(ctypes.Structure):
    """``kw_arch``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("backend", c_uint32),
        ("name", c_char_p),
        ("compute_units", c_uint32),
        ("wave_size", c_uint32),
        ("fp8_format", c_uint32),
        ("reserved", c_uint32),
        ("lds_bytes", c_uint64),
        ("clock_ghz", c_double),
        ("memory_gbytes_per_s", c_double),
        ("flops_per_clock_per_cu", c_double * 8),
    ]


CheckDevice = ctypes.CFUNCTYPE(c_int32, c_int32, c_void_p, c_size_t)
LastError = ctypes.CFUNCTYPE(c_char_p)
SetRuntime = ctypes.CFUNCTYPE(c_int32, c_char_p)


class LibraryStruct(ctypes.Structure):
    """``kw_library``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("abi_version", c_uint32),
        ("name", c_char_p),
        ("arch", POINTER(ArchStruct)),
        ("kernels", POINTER(POINTER(KernelStruct))),
        ("kernel_count", c_uint64),
        ("check_device", CheckDevice),
        ("last_error", LastError),
        ("set_num_threads", c_void_p),
        ("set_runtime", SetRuntime),  # only where struct_size reaches it
    ]


class DispatcherOptions(ctypes.Structure):
    """``kw_dispatcher_options``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device_check", c_uint32),
        ("device", c_int32),
        ("compute_units", c_uint32),
        ("arch", c_char_p),
        ("features", c_char_p),
        ("plan_limit", c_uint32),
        ("reserved", c_uint32),
    ]


class LibraryOptions(ctypes.Structure):
    """``kw_library_options``."""

    _fields_ = [("struct_size", c_uint32), ("priority", c_int32)]


class Candidate(ctypes.Structure):
    """``kw_candidate``."""

    _fields_ = [
        ("kernel", POINTER(KernelStruct)),
        ("arch", POINTER(ArchStruct)),
        ("priority", c_int32),
        ("reserved", c_uint32),
        ("score", c_double),
    ]


Score = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(Candidate), c_uint64)


class SelectionOptions(ctypes.Structure):
    """``kw_selection_options``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("provider", c_uint32),
        ("kernel", c_char_p),
        ("score", Score),
        ("user", c_void_p),
        ("label", c_char_p),
    ]


class PlanInfo(ctypes.Structure):
    """``kw_plan_info``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("stage_count", c_uint32),
        ("workspace_bytes", c_uint64),
        ("choices", c_char_p),
        ("reason", c_char_p),
    ]


class StageInfo(ctypes.Structure):
    """``kw_stage_info``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("kernel", POINTER(KernelStruct)),
        ("library", POINTER(LibraryStruct)),
        ("scratch_offset", c_uint64),
        ("scratch_bytes", c_uint64),
        ("workspace_bytes", c_uint64),
        ("choices", c_char_p),
        ("reason", c_char_p),
    ]


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "kw_dispatcher_version": (c_uint32, []),
    "kw_dispatcher_abi_version": (c_uint32, []),
    "kw_status_name": (c_char_p, [c_int32]),
    "kw_last_error": (c_char_p, []),
    "kw_dispatcher_create": (c_int32, [POINTER(DispatcherOptions), POINTER(c_void_p)]),
    "kw_dispatcher_destroy": (None, [c_void_p]),
    "kw_dispatcher_add_library": (c_int32, [c_void_p, c_char_p, POINTER(LibraryOptions)]),
    "kw_dispatcher_add_descriptor": (c_int32, [c_void_p, POINTER(LibraryStruct), POINTER(LibraryOptions)]),
    "kw_dispatcher_set_priority": (c_int32, [c_void_p, c_char_p, c_int32]),
    "kw_dispatcher_set_selection": (c_int32, [c_void_p, POINTER(SelectionOptions)]),
    "kw_dispatcher_set_num_threads": (c_int32, [c_void_p, c_uint32]),
    "kw_dispatcher_export_json": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "kw_dispatcher_explain": (
        c_int32,
        [c_void_p, c_void_p, c_char_p, c_size_t, POINTER(c_size_t)],
    ),
    "kw_dispatcher_shuffled_b": (c_int32, [c_void_p, c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "kw_dispatcher_shuffle_b": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_uint64]),
    "kw_plan_create": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "kw_plan_destroy": (None, [c_void_p]),
    "kw_plan_get_info": (c_int32, [c_void_p, POINTER(PlanInfo)]),
    "kw_plan_get_stage": (c_int32, [c_void_p, c_uint32, POINTER(StageInfo)]),
    "kw_plan_launch": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "kw_python_use": (None, [c_void_p]),
    "kw_python_call": (c_void_p, [c_void_p, c_void_p]),
}

_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """libkernelwright.so: $KERNELWRIGHT_LIBRARY, or the file beside this package. Raises NativeLibraryError."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> ctypes.CDLL:
    given = os.environ.get("KERNELWRIGHT_LIBRARY")
    if given:
        return _open(given)
    file = resources.files("kernelwright.dispatch").joinpath("libkernelwright.so")
    if not file.is_file():
        raise errors.NativeLibraryError(
            f"{file} is not there; install the kernelwright package, or name the file in KERNELWRIGHT_LIBRARY"
        )
    with resources.as_file(file) as path:  # a mapped file may be removed afterwards
        return _open(str(path))


def _open(path: str) -> ctypes.CDLL:
    try:
        opened = ctypes.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(opened, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise errors.NativeLibraryError(f"{path} is not the native dispatcher: {error}") from error
    versions = opened.kw_dispatcher_version(), opened.kw_dispatcher_abi_version()
    if versions != (DISPATCHER_VERSION, ABI_VERSION):
        raise errors.NativeLibraryError(
            f"{path} has dispatcher and ABI versions {versions}; allowed: {(DISPATCHER_VERSION, ABI_VERSION)}"
        )
    return opened


OK = 0
BUFFER_TOO_SMALL = 10
_ERRORS: dict[int, type[errors.KernelwrightError]] = {
    1: errors.ProblemError,
    3: errors.NoKernelError,
    4: errors.AbiMismatchError,
    5: errors.ArchMismatchError,
    6: errors.ProblemError,
    7: errors.DeviceError,
    8: errors.LaunchError,
    11: errors.LibraryLoadError,
}


def check(status: int, invalid: type[errors.KernelwrightError] | None = None) -> None:
    """Raise what a failed status means, with the native text. ``invalid`` replaces the class of an invalid argument."""
    if status == OK:
        return
    text = (library().kw_last_error() or b"").decode(errors="replace")
    kind = _ERRORS.get(status, errors.KernelwrightError)
    raise (invalid if invalid is not None and status == 1 else kind)(text)


def text_of(call: Callable[[Any, int, Any], int]) -> str:
    """The text that ``call(buffer, bytes, needed)`` writes, whatever its length."""
    needed = c_size_t(0)
    status = call(None, 0, byref(needed))
    while status == BUFFER_TOO_SMALL:  # it may grow between two calls
        buffer = ctypes.create_string_buffer(needed.value)
        status = call(buffer, needed.value, byref(needed))
        if status == OK:
            return buffer.value.decode(errors="replace")
    check(status)
    return ""


def choices_of(text: str) -> dict[str, str]:
    """The choices of a plan, such as ``split_k=4``, by name."""
    return dict(part.split("=", 1) for part in text.split())
