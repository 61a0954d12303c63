"""Rearrange B on the host into the order that a kernel reads, and copy it to the device that will use it."""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

import numpy as np

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ArrayError, NoKernelError
from kernelwright.dispatch.core.workspace import ordinal_of
from kernelwright.dispatch.operations.gemm.operand import Operand, ShuffledB
from kernelwright.problems.gemm.problem import GemmProblem

_ALIGNMENT = 256


def shuffled_format(core: Any, problem: GemmProblem) -> tuple[int, int]:
    """The b_format of the problem, or else of the best kernel, and the size of B in it, in bytes.

    ``core`` is the :class:`NativeDispatcher`. Raises NoKernelError if no kernel reads preshuffled B.
    """
    b_format, nbytes, struct = ctypes.c_uint64(), ctypes.c_uint64(), problem.native()
    core.check(
        core.native.kw_dispatcher_shuffled_b(
            core.handle, native.byref(struct), native.byref(b_format), native.byref(nbytes)
        )
    )
    return b_format.value, nbytes.value


def shuffle(core: Any, view: Operand, m: int, dtype_c: str, layout: str | None, fields: dict[str, Any]) -> ShuffledB:
    """See :meth:`Dispatcher.shuffle_b`. Raises NoKernelError if no kernel takes B in either layout."""
    host = _on_host(view)
    (k, n), fnuz, memory = view.shape, view.fnuz, core.device.memory
    refused: NoKernelError | None = None
    for letters in [layout] if layout is not None else _layouts(host):
        given = {"dtype": view.dtype, "dtype_c": dtype_c, "layout": letters, "split_k": 0, **fields}
        try:
            b_format, nbytes = shuffled_format(core, GemmProblem(m, n, k, **given))
        except NoKernelError as error:
            refused = refused or error
            continue
        source = np.asarray(host, order="C" if letters[1] == "r" else "F")
        data = _aligned(nbytes)
        struct = GemmProblem(m, n, k, **given, b_format=b_format).native()
        status = core.native.kw_dispatcher_shuffle_b(
            core.handle, native.byref(struct), source.ctypes.data, data.ctypes.data, nbytes
        )
        core.check(status, ArrayError)
        strides = (n, 1) if letters[1] == "r" else (1, k)
        placed, pointer, family = _placed(data, view, memory)
        return ShuffledB(
            placed, Operand(pointer, (k, n), strides, view.dtype, fnuz, memory, family, placed, b_format=b_format)
        )
    assert refused is not None
    raise refused


def _layouts(host: np.ndarray[Any, Any]) -> tuple[str, str]:
    """The layout that B has, then the other: it is copied anyway."""
    return ("rrr", "rcr") if host.flags.c_contiguous and not host.flags.f_contiguous else ("rcr", "rrr")


def _on_host(view: Operand) -> np.ndarray[Any, Any]:
    """B as a NumPy array; dtypes unknown to NumPy are those of ml_dtypes, or bytes."""
    if view.device != "cpu":
        if view.family not in ("torch", "cupy"):
            raise ArrayError(f"cannot copy a {view.family} array from {view.device}; pass b on the host")
        owner = view.owner.cpu() if view.family == "torch" else view.owner.get()
        return _read(view._replace(pointer=_address(owner), owner=owner, strides=_strides(owner)))
    return _read(view)


def _read(view: Operand) -> np.ndarray[Any, Any]:
    size = dtypes.ITEMSIZE[view.dtype]
    kind = np.dtype({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])  # only moved, never computed with
    if 0 in view.shape:
        return np.empty(view.shape, kind)
    if min(view.strides) < 0:
        raise ArrayError(f"b has strides {view.strides}; negative strides cannot be addressed, pass a copy")
    last = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
    memory = (ctypes.c_uint8 * ((last + 1) * size)).from_address(view.pointer)
    rows, columns = view.strides
    matrix = np.ndarray(view.shape, kind, memoryview(memory), 0, (rows * size, columns * size))
    return matrix.copy(order="F" if rows < columns else "C")  # so that nothing refers to the caller's memory


def _address(array: Any) -> int:
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.__array_interface__["data"][0])


def _strides(array: Any) -> tuple[int, int]:
    if hasattr(array, "data_ptr"):
        rows, columns = array.stride()
    else:
        rows, columns = (stride // array.itemsize for stride in array.strides)
    return rows, columns


def _aligned(nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    room = np.empty(nbytes + _ALIGNMENT, np.uint8)
    shift = -room.ctypes.data % _ALIGNMENT
    return room[shift : shift + nbytes]


def _placed(data: np.ndarray[Any, Any], view: Operand, memory: str) -> tuple[Any, int, str]:
    """Copy the bytes to the dispatcher's device. Returns them, their address and the library that owns them."""
    if memory == "cpu" and view.family == "torch":
        placed: Any = importlib.import_module("torch").from_numpy(data)
        return placed, placed.data_ptr(), "torch"
    if memory == "cpu":
        return data, data.ctypes.data, "numpy"
    if view.family == "cupy":
        cupy = importlib.import_module("cupy")
        with cupy.cuda.Device(ordinal_of(memory)):  # CuPy allocates on the current device
            placed = cupy.asarray(data)
        return placed, int(placed.data.ptr), "cupy"
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ArrayError(f"b cannot be brought to {memory} without torch or CuPy; install one of them") from None
    placed = torch.from_numpy(data).to(memory.replace("hip", "cuda"))
    return placed, placed.data_ptr(), "torch"
