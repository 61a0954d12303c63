"""The C ABI frame in ctypes: libkernelwright.so, its functions, and its statuses as exceptions.

The library is loaded on first use. Each operation's folder defines its own structs.
"""

from __future__ import annotations

import ctypes
import importlib.readers  # noqa: F401 - resources.files() would import it when the first dispatcher is made
import os
import sys
import threading
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from importlib import resources
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Protocol, cast

from kernelwright.dispatch.core import errors

ABI_VERSION = 3
DISPATCHER_VERSION = 3
FP8_OCP, FP8_FNUZ = 0, 1  # kw_fp8_format
BACKENDS = {1: "cpu", 2: "hip", 3: "cuda"}

CHECK_ON_ADD, CHECK_ON_LAUNCH, CHECK_NEVER = range(3)
SELECT_ANALYTIC, SELECT_FIRST_FIT, SELECT_EXPLICIT, SELECT_CALLBACK, SELECT_AUTO = range(5)

__all__ = ["byref", "sizeof"]


class ProblemHead(ctypes.Structure):
    """``kw_problem``: the first members of every problem."""

    _fields_ = [("struct_size", c_uint32), ("op", c_uint32)]


class Launch(ctypes.Structure):
    """``kw_launch``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("stream", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
    ]


class Parallel(ctypes.Structure):
    """``kw_parallel``."""

    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("pool", c_void_p), ("run", c_void_p)]


# The functions of a kernel; pointers to structs are void pointers.
Supports = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t)
WorkspaceSize = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
MakePlan = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
LaunchPlan = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p)


class KernelStruct(ctypes.Structure):
    """``kw_kernel``."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "abi_version", "op", "plan_bytes")],
        *[(name, c_char_p) for name in ("name", "arch", "identity", "spec_json", "features")],
        ("traits", c_void_p),
        ("supports", Supports),
        ("workspace_size", WorkspaceSize),
        ("plan", MakePlan),
        ("launch", LaunchPlan),
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
        ("times", c_uint32),
        ("lds_bytes", c_uint64),
        ("clock_ghz", c_double),
        ("memory_gbytes_per_s", c_double),
        ("flops_per_clock_per_cu", c_double * 8),
    ]


CheckDevice = ctypes.CFUNCTYPE(c_int32, c_int32, c_void_p, c_size_t)
LastError = ctypes.CFUNCTYPE(c_char_p)
SetNumThreads = ctypes.CFUNCTYPE(c_int32, c_uint32)
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
        ("set_num_threads", SetNumThreads),
        ("set_runtime", SetRuntime),  # only if struct_size reaches it
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

    _fields_ = [("struct_size", c_uint32), ("priority", c_int32), ("digest_check", c_uint32), ("reserved", c_uint32)]


class Candidate(ctypes.Structure):
    """``kw_candidate``."""

    _fields_ = [
        ("kernel", POINTER(KernelStruct)),
        ("arch", POINTER(ArchStruct)),
        ("priority", c_int32),
        ("value", c_uint32),
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
        *[(name, c_uint64) for name in ("scratch_offset", "scratch_bytes", "workspace_bytes")],
        ("choices", c_char_p),
        ("reason", c_char_p),
    ]


class TorchCount(ctypes.Structure):
    """``kw_torch_count``."""

    _fields_ = [("calls", c_uint64), ("host_ns", c_uint64)]


class Extension(Protocol):
    """The extension module, built for CPython's stable ABI: ``dispatcher_cpp/src/python/module.cpp``."""

    def bound_call(
        self,
        plan: int,
        launch: int,
        args: int,
        keep_interpreter: bool,
        result: object,
        failed: Callable[[int], object],
        keep: object,
        /,
    ) -> Callable[[], Any]:
        """A function that launches and returns ``result``; a failed launch calls ``failed(status)``, which raises.

        Structs are passed by address; ``keep`` owns them.
        """

    def array_address(self, array: Any, /) -> int:
        """The address of a NumPy array's first element."""

    def array_addresses(self, arrays: tuple[Any, ...], outputs: int, /) -> list[int | None] | None:
        """Addresses of NumPy arrays, None for None; None if any is misaligned or a read-only output."""


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "kw_dispatcher_version": (c_uint32, []),
    "kw_dispatcher_abi_version": (c_uint32, []),
    "kw_status_name": (c_char_p, [c_int32]),
    "kw_problem_validate": (c_int32, [c_void_p]),
    "kw_last_error": (c_char_p, []),
    "kw_dispatcher_create": (c_int32, [POINTER(DispatcherOptions), POINTER(c_void_p)]),
    "kw_dispatcher_destroy": (None, [c_void_p]),
    "kw_dispatcher_add_library": (c_int32, [c_void_p, c_char_p, POINTER(LibraryOptions)]),
    "kw_dispatcher_add_descriptor": (c_int32, [c_void_p, POINTER(LibraryStruct), POINTER(LibraryOptions)]),
    "kw_dispatcher_set_priority": (c_int32, [c_void_p, c_char_p, c_int32]),
    "kw_dispatcher_set_selection": (c_int32, [c_void_p, POINTER(SelectionOptions)]),
    "kw_dispatcher_set_num_threads": (c_int32, [c_void_p, c_uint32]),
    "kw_set_threads": (c_int32, [c_uint32, c_void_p]),
    "kw_threads_in_use": (c_uint32, [c_void_p]),
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
    "kw_torch_use": (c_int32, [c_void_p]),
    "kw_torch_forget": (None, []),
    "kw_torch_after_fork": (None, []),
    "kw_torch_counted": (TorchCount, [c_uint32, c_uint32]),
}

_lock = threading.Lock()
_loaded: tuple[ctypes.CDLL, Extension] | None = None


def _after_fork() -> None:
    """A child has one thread; another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def library() -> ctypes.CDLL:
    """libkernelwright.so: $KERNELWRIGHT_LIBRARY, or the file beside this package. Raises NativeLibraryError."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded[0]


def extension() -> Extension:
    """The extension module in libkernelwright.so. Raises NativeLibraryError."""
    library()
    assert _loaded is not None
    return _loaded[1]


def _load() -> tuple[ctypes.CDLL, Extension]:
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


def _open(path: str) -> tuple[ctypes.CDLL, Extension]:
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
    return opened, _extension(path)


def _extension(path: str) -> Extension:
    if "t" in sys.abiflags:
        raise errors.NativeLibraryError(
            "this Python has no global interpreter lock; allowed: CPython with one, of which the stable ABI is"
        )
    name = f"{__package__}._native"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    assert spec is not None and spec.loader is not None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except (ImportError, SystemError) as error:
        raise errors.NativeLibraryError(f"{path} is no extension module of this Python: {error}") from error
    return cast(Extension, module)


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
    """Raise the error of a failed status with the native message; ``invalid`` is the class for an invalid argument."""
    if status == OK:
        return
    text = (library().kw_last_error() or b"").decode(errors="replace")
    kind = _ERRORS.get(status, errors.KernelwrightError)
    raise (invalid if invalid is not None and status == 1 else kind)(text)


def fp8_is_fnuz(library: Any) -> bool:
    """Whether a library's kernels read 8-bit floats in the FNUZ formats instead of the OCP ones."""
    return bool(library.contents.arch.contents.fp8_format == FP8_FNUZ)


def text_of(call: Callable[[Any, int, Any], int]) -> str:
    """The text, of any length, that ``call(buffer, bytes, needed)`` writes."""
    needed = c_size_t(0)
    status = call(None, 0, byref(needed))
    while status == BUFFER_TOO_SMALL:  # the text may grow between two calls
        buffer = ctypes.create_string_buffer(needed.value)
        status = call(buffer, needed.value, byref(needed))
        if status == OK:
            return buffer.value.decode(errors="replace")
    check(status)
    return ""
