"""The functions of libdispatcher_conv_lib.so in ctypes, as clients of the CK Tile dispatcher bind them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from convolution.correctness.reference import convolve
from kernelwright.dispatch import ConvProblem

DIRECTIONS = ("forward", "backward_data", "backward_weight")
_COMMON = [
    *("N", "G", "C", "K", "input_d", "input_h", "input_w", "filter_z", "filter_y", "filter_x"),
    *(f"{kind}_{axis}" for kind in ("stride", "pad", "dilation") for axis in "dhw"),
]


class Problem(ctypes.Structure):
    """``ConvProblemC``."""

    _fields_ = [(name, c_int) for name in (*_COMMON, "direction", "split_k")]


class WeightProblem(ctypes.Structure):
    """``ConvBwdwProblemC``."""

    _fields_ = [(name, c_int) for name in (*_COMMON, "split_k")]


# What the Python client binds when it loads, with its types.
FAMILIAR: dict[str, tuple[Any, list[Any]]] = {
    "conv_dispatcher_init": (c_int, []),
    "conv_dispatcher_cleanup": (c_int, []),
    "conv_dispatcher_version": (c_char_p, []),
    "conv_dispatcher_has_kernels": (c_int, []),
    "conv_dispatcher_has_bwd_data": (c_int, []),
    "conv_dispatcher_has_bwd_weight": (c_int, []),
    "conv_dispatcher_get_kernel_count": (c_int, []),
    "conv_dispatcher_get_kernel_name": (c_int, [c_int, c_char_p, c_int]),
    "conv_dispatcher_is_supported": (c_int, [POINTER(Problem)]),
    "conv_dispatcher_run": (c_float, [c_void_p, c_void_p, c_void_p, POINTER(Problem), c_void_p]),
}
# What the client of older versions binds of a library for backward weight.
OLDER: dict[str, tuple[Any, list[Any]]] = {
    "conv_bwdw_init": (c_int, []),
    "conv_bwdw_cleanup": (None, []),
    "conv_bwdw_version": (c_char_p, []),
    "conv_bwdw_has_kernels": (c_int, []),
    "conv_bwdw_get_kernel_count": (c_int, []),
    "conv_bwdw_get_kernel_name": (c_int, [c_int, c_char_p, c_int]),
    "conv_bwdw_run": (c_float, [c_void_p, c_void_p, c_void_p, POINTER(WeightProblem), c_void_p]),
}
OWN: dict[str, tuple[Any, list[Any]]] = {
    "conv_dispatcher_last_error": (c_char_p, []),
    "conv_dispatcher_init_from": (c_int, [c_char_p, c_char_p]),
    "conv_dispatcher_select_kernel": (c_int, [POINTER(Problem), c_char_p, c_int]),
}


def opened(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in {**FAMILIAR, **OLDER, **OWN}.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def native_problem(p: ConvProblem) -> Problem:
    """The same problem as the familiar struct."""
    made = Problem(N=p.n, G=p.groups, C=p.c, K=p.k, direction=DIRECTIONS.index(p.direction), split_k=1)
    for name, field, missing in (
        ("input_", p.size, 1), ("filter_", p.filter, 1), ("stride_", p.stride, 1), ("pad_", p.pad_left, 0),
        ("dilation_", p.dilation, 1),
    ):  # fmt: skip
        axes = "zyx" if name == "filter_" else "dhw"
        values = [missing] * (3 - len(p.sizes)) + list(field)  # type: ignore[arg-type]
        for axis, value in zip(axes, values, strict=True):
            setattr(made, name + axis, value)
    return made


def check_runs(library: Any, p: ConvProblem) -> None:
    """One call on small whole numbers, whose sums are exact."""
    rng = np.random.default_rng(p.k)
    shapes = {
        "forward": (p.x_shape, p.w_shape, p.y_shape), "backward_data": (p.y_shape, p.w_shape, p.x_shape),
        "backward_weight": (p.x_shape, p.y_shape, p.w_shape),
    }[p.direction]  # fmt: skip
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes[:2])
    c = np.full(shapes[2], np.nan, np.float32)
    pointers = [one.ctypes.data for one in (a, b, c)]
    time = library.conv_dispatcher_run(*pointers, ctypes.byref(native_problem(p)), None)
    assert time > 0, library.conv_dispatcher_last_error()
    np.testing.assert_array_equal(c, convolve(p, a, b))
