"""The functions of libdispatcher_gemm_lib.so in ctypes, and calls of them that compare results."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "dispatcher_abi_version": (ctypes.c_uint32, []),
    "dispatcher_last_error": (ctypes.c_char_p, []),
    "dispatcher_init": (ctypes.c_int, []),
    "dispatcher_initialize": (ctypes.c_int, []),
    "dispatcher_init_from": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p]),
    "dispatcher_cleanup": (None, []),
    "dispatcher_get_kernel_count": (ctypes.c_int, []),
    "dispatcher_get_kernel_name_at": (ctypes.c_int, [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]),
    "dispatcher_get_kernel_name": (ctypes.c_char_p, []),
    "dispatcher_export_registry_json": (ctypes.c_char_p, []),
    "dispatcher_is_supported": (ctypes.c_int, [ctypes.c_int64] * 3),
    "dispatcher_select_kernel": (ctypes.c_int, [*[ctypes.c_int64] * 3, ctypes.c_char_p, ctypes.c_int]),
    "dispatcher_run_gemm": (
        ctypes.c_int,
        [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.POINTER(ctypes.c_float)],
    ),
    "dispatcher_get_num_d_tensors": (ctypes.c_int, []),
    "dispatcher_run_multi_d_gemm": (
        ctypes.c_int,
        [
            *([ctypes.c_void_p] * 3 + [ctypes.c_int, ctypes.c_void_p]),
            *([ctypes.c_int64] * 3 + [ctypes.POINTER(ctypes.c_float)]),
        ],
    ),
    "dispatcher_run_grouped_gemm": (
        ctypes.c_int,
        [ctypes.c_int, *[ctypes.c_void_p] * 6, ctypes.POINTER(ctypes.c_float)],
    ),
}


def opened(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def init(library: Any, kernels: Path, types: str | None = "fp32_rcr") -> None:
    status = library.dispatcher_init_from(os.fsencode(kernels), types.encode() if types else None)
    assert status == 0 and library.dispatcher_last_error() == b"", library.dispatcher_last_error()


def refused(library: Any, kernels: str, types: str | None = "fp32_rcr") -> str:
    assert library.dispatcher_init_from(kernels.encode(), types.encode() if types else None) == -1
    assert library.dispatcher_get_kernel_count() == 0  # which is no failure: the sentence stays
    return str(library.dispatcher_last_error().decode())


def operands(m: int, n: int, k: int, layout: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Small whole numbers, whose products are exact, in the orders of the layout."""
    rng = np.random.default_rng(m * 100 + n)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    return np.asarray(a, order="C" if layout[0] == "r" else "F"), np.asarray(b, order="C" if layout[1] == "r" else "F")


def check_runs(library: Any, m: int, n: int, k: int, layout: str = "rcr") -> float:
    """One timed call, compared element by element; the time in ms."""
    a, b = operands(m, n, k, layout)
    c = np.full((m, n), np.nan, np.float32)
    time = ctypes.c_float(-2)
    status = library.dispatcher_run_gemm(a.ctypes.data, b.ctypes.data, c.ctypes.data, m, n, k, ctypes.byref(time))
    assert status == 0, library.dispatcher_last_error()
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return time.value


def pointers(arrays: Sequence[np.ndarray[Any, Any] | None]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[None if one is None else one.ctypes.data for one in arrays])


def check_multi_d(library: Any, m: int, n: int, k: int, count: int, op: Any, activation: Any) -> None:
    a, b = operands(m, n, k, "rrr")
    ds = [np.random.default_rng(i).integers(-3, 4, (m, n)).astype(np.float32) for i in range(count)]
    c, time = np.full((m, n), np.nan, np.float32), ctypes.c_float(-2)
    given = (a.ctypes.data, b.ctypes.data, pointers(ds), count, c.ctypes.data, m, n, k, ctypes.byref(time))
    assert library.dispatcher_run_multi_d_gemm(*given) == 0, library.dispatcher_last_error()
    np.testing.assert_array_equal(c, activation(functools.reduce(op, ds, a.astype(np.float64) @ b.astype(np.float64))))
    assert time.value >= 0


def check_grouped(library: Any, shapes: Sequence[tuple[int, int, int]]) -> None:
    pairs = [operands(*shape, "rrr") for shape in shapes]
    outs = [np.full(shape[:2], np.nan, np.float32) for shape in shapes]
    sizes = [(ctypes.c_int64 * len(shapes))(*column) for column in zip(*shapes, strict=True)] or [None] * 3
    a, b = (pointers([pair[index] for pair in pairs]) for index in (0, 1))
    time = ctypes.c_float(-2)
    status = library.dispatcher_run_grouped_gemm(len(shapes), *sizes, a, b, pointers(outs), ctypes.byref(time))
    assert status == 0 and time.value >= 0, library.dispatcher_last_error()
    for (left, right), out in zip(pairs, outs, strict=True):
        np.testing.assert_array_equal(out, left.astype(np.float64) @ right.astype(np.float64))


GROUPS = [(17, 9, 33), (1, 1, 1), (0, 4, 4), (5, 6, 0), (64, 3, 8)]
RELU = (operator.add, lambda x: np.maximum(x, 0))
TIMES = (operator.mul, lambda x: x)
