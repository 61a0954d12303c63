"""Read a DLPack capsule in place (https://dmlc.github.io/dlpack/latest/c_api.html)."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from kernelwright.dispatch.core.errors import ArrayError


class _Tensor(ctypes.Structure):
    """``DLTensor``, with the members of ``DLDevice`` and ``DLDataType``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class View(NamedTuple):
    """Contents of a capsule, which ``capsule`` keeps alive. ``strides`` is None for a dense row-major tensor."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device: str
    capsule: Any


_DTYPES = {
    (0, 8): "int8",
    (0, 32): "int32",
    (2, 16): "float16",
    (2, 32): "float32",
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
}
_HOST = frozenset({1, 3, 11})  # CPU, CUDA-pinned and ROCm-pinned memory are all plain addresses here
_DEVICES = {2: "cuda", 10: "hip", 13: "cuda"}


def view(array: Any, stream: int | None = None) -> View:
    """Return the tensor that ``array.__dlpack__()`` exposes. ArrayError for a device or dtype that no kernel serves."""
    device_type, _ = array.__dlpack_device__()
    if int(device_type) in _HOST:
        capsule = array.__dlpack__()
    else:
        # The protocol forbids 0 on CUDA (1 is the legacy default stream) and 1 on ROCm (0 is its default).
        capsule = array.__dlpack__(stream=stream or (1 if int(device_type) != 10 else 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(get(capsule, b"dltensor") or 0)
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise ArrayError(f"DLPack dtype (code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) is not served")
    kind = "cpu" if tensor.device_type in _HOST else _DEVICES.get(tensor.device_type)
    if kind is None:
        raise ArrayError(f"DLPack device type {tensor.device_type} is not served; allowed: CPU, CUDA, ROCm")
    return View(
        (tensor.data or 0) + tensor.byte_offset,
        tuple(tensor.shape[: tensor.ndim]),
        tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        dtype,
        kind if kind == "cpu" else f"{kind}:{tensor.device_id}",
        capsule,
    )
