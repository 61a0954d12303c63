"""Matrices of any array library as pointer, shape and strides, without a copy and without importing that library."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from tilewright.dispatch import dlpack, dtypes
from tilewright.dispatch.errors import ArrayError


class Operand(NamedTuple):
    """A matrix in memory.

    ``strides`` count elements; ``device`` is ``cpu``, ``cuda:0``, ``hip:0``, … ``owner`` keeps the memory alive;
    ``family`` names the array library.
    """

    pointer: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: str
    fnuz: bool
    device: str
    family: str
    owner: Any
    readonly: bool = False

    @property
    def signature(self) -> tuple[object, ...]:
        """Everything that a plan depends on: two operands with equal signatures can be swapped."""
        return self.shape, self.strides, self.dtype, self.fnuz, self.device


def operand(array: Any, name: str = "array", stream: int | None = None) -> Operand:
    """View a NumPy array, torch tensor, or anything with DLPack or ``__cuda_array_interface__`` as a matrix.

    ``name`` is what errors call it; a DLPack producer is asked to make the data ready on ``stream``.
    Raises ArrayError for another kind of object, another rank than 2, or a dtype that no kernel knows.
    """
    if isinstance(array, np.ndarray):
        return _from_numpy(array, name)
    if is_torch(array):
        return _from_torch(array, name)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, name, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_cuda_interface(array, name)
    raise ArrayError(
        f"{name} is a {type(array).__name__}; allowed: a NumPy array, a torch tensor, or an object with __dlpack__ or "
        "__cuda_array_interface__"
    )


_TORCH_TYPES: set[type] = set()  # torch.Tensor and the subclasses met so far


def is_torch(array: Any) -> bool:
    """Whether it is a tensor of torch, which need not have been imported."""
    kind = type(array)
    if kind in _TORCH_TYPES:
        return True
    if kind.__module__.partition(".")[0] != "torch" or not hasattr(kind, "data_ptr"):
        return False
    _TORCH_TYPES.add(kind)
    return True


def _two(name: str, shape: Any) -> tuple[int, int]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 2:
        raise ArrayError(f"{name} has shape {sizes}; allowed: two dimensions")
    return sizes[0], sizes[1]


def _in_elements(name: str, strides: Any, itemsize: int) -> tuple[int, int]:
    rows, columns = strides
    if rows % itemsize or columns % itemsize:
        raise ArrayError(f"{name} has strides of {rows} and {columns} bytes; allowed: multiples of {itemsize}")
    return rows // itemsize, columns // itemsize


def _from_numpy(array: np.ndarray[Any, Any], name: str) -> Operand:
    dtype, fnuz = dtypes.name_of(array.dtype)
    if not array.dtype.isnative:
        raise ArrayError(f"{name} is not in this machine's byte order; convert it with astype(dtype.newbyteorder('='))")
    shape, size = array.shape, array.itemsize
    if len(shape) != 2:
        _two(name, shape)
    rows, columns = array.strides
    if size > 1:
        if rows % size or columns % size:
            _in_elements(name, array.strides, size)
        if not array.flags.aligned:
            raise ArrayError(f"{name} is not aligned to its element size of {size} bytes; pass a copy")
        rows, columns = rows // size, columns // size
    pointer, readonly = array.__array_interface__["data"]
    return Operand(pointer, shape, (rows, columns), dtype, fnuz, "cpu", "numpy", array, readonly)


def _from_torch(tensor: Any, name: str) -> Operand:
    if tensor.layout is not sys.modules["torch"].strided:
        raise ArrayError(f"{name} is a tensor of layout {tensor.layout}; allowed: a dense (strided) one")
    dtype, fnuz = dtypes.name_of(tensor.dtype)
    device = tensor.device
    kind = device.type
    if kind == "cuda" and sys.modules["torch"].version.hip:
        kind = "hip"  # ROCm builds of torch call their devices cuda
    where = "cpu" if kind == "cpu" else f"{kind}:{device.index}"
    shape = _two(name, tensor.shape)
    rows, columns = tensor.stride()
    return Operand(tensor.data_ptr(), shape, (rows, columns), dtype, fnuz, where, "torch", tensor)


def _from_dlpack(array: Any, name: str, stream: int | None) -> Operand:
    view = dlpack.view(array, stream)
    family = type(array).__module__.partition(".")[0]
    dtype, fnuz = dtypes.name_of(view.dtype)
    shape = _two(name, view.shape)
    rows, columns = view.strides or (shape[1], 1)
    readonly = family.startswith("jax")  # immutable, though an unversioned capsule cannot say so
    return Operand(
        view.pointer, shape, (rows, columns), dtype, fnuz, view.device, family, (array, view.capsule), readonly
    )


def _from_cuda_interface(array: Any, name: str) -> Operand:
    interface = array.__cuda_array_interface__
    dtype, fnuz = dtypes.name_of(np.dtype(interface["typestr"]))
    shape = _two(name, interface["shape"])
    size = dtypes.ITEMSIZE[dtype]
    strides = interface.get("strides") or (shape[1] * size, size)
    pointer, readonly = interface["data"]
    # The interface does not tell the device; objects that know it say so, others are on the first one.
    ordinal = getattr(getattr(array, "device", None), "id", 0)
    family = type(array).__module__.partition(".")[0]
    return Operand(
        pointer or 0, shape, _in_elements(name, strides, size), dtype, fnuz, f"cuda:{ordinal}", family, array, readonly
    )


def empty(like: Operand, shape: tuple[int, int], dtype: str, row_major: bool, owner: Any = None) -> Any:
    """An uninitialised matrix of the same array library and device. ArrayError if that library cannot be written to."""
    if like.family == "numpy":
        same = owner is not None and like.dtype == dtype
        numpy_dtype = owner.dtype if same else dtypes.numpy_dtype(dtype, like.fnuz)
        return np.empty(shape, numpy_dtype, order="C" if row_major else "F")
    if like.family == "torch":
        torch = sys.modules["torch"]
        kind = getattr(torch, _TORCH_NAMES[dtype])
        if row_major:
            return torch.empty(shape, dtype=kind, device=owner.device)
        return torch.empty(shape[::-1], dtype=kind, device=owner.device).t()
    if like.family == "cupy":
        return sys.modules["cupy"].empty(shape, dtypes.numpy_dtype(dtype), order="C" if row_major else "F")
    raise ArrayError(f"cannot allocate a result beside a {like.family} array; pass out=")


_TORCH_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "bf8": "float8_e5m2",
    "int8": "int8",
    "int32": "int32",
}
