"""The C ABI in ctypes, written once more: what the host path of AMD libraries is called with."""

from __future__ import annotations

import ctypes


class Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("struct_size", "op", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")),
        *((name, ctypes.c_uint32) for name in ("layout_a", "layout_b", "layout_c", "split_k")),
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")),
        *((name, ctypes.c_double) for name in ("alpha", "beta")),
        *((name, ctypes.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c")),
        *((name, ctypes.c_uint32) for name in ("num_d", "d_op", "activation", "reserved")),
        *((name, ctypes.c_int64 * 4) for name in ("ld_multi_d", "stride_multi_d")),
        ("b_format", ctypes.c_uint64),
    )


class Where(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
    )


class Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("struct_size", "reserved")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "c", "d")),
        ("multi_d", ctypes.c_void_p * 4),
    )


Supports = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
Workspace = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
Plan = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
Launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
CheckDevice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t)
LastError = ctypes.CFUNCTYPE(ctypes.c_char_p)
SetThreads = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
SetRuntime = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


class Descriptor(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("struct_size", "abi_version", "op", "plan_bytes")),
        *((name, ctypes.c_char_p) for name in ("name", "arch", "identity", "spec_json", "features")),
        ("traits", ctypes.c_void_p),
        ("supports", Supports),
        ("workspace_size", Workspace),
        ("plan", Plan),
        ("launch", Launch),
        ("extension", ctypes.c_void_p),
    )


class Library(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("struct_size", "abi_version")),
        ("name", ctypes.c_char_p),
        ("arch", ctypes.c_void_p),
        ("kernels", ctypes.POINTER(ctypes.POINTER(Descriptor))),
        ("kernel_count", ctypes.c_uint64),
        ("check_device", CheckDevice),
        ("last_error", LastError),
        ("set_num_threads", SetThreads),
        ("set_runtime", SetRuntime),
    )
