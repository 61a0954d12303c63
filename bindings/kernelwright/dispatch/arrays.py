"""Matrices, and batches of them, of any array library as pointer, shape and strides, without a copy and without
importing that library."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelwright.dispatch import dlpack, dtypes
from kernelwright.dispatch.errors import ArrayError


class Operand(NamedTuple):
    """A matrix in memory, or ``batch`` of them ``batch_stride`` elements apart (None: an array of two dimensions).

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
    batch: int | None = None
    batch_stride: int = 0
    b_format: int = 0  # of a B that a kernel's shuffle ordered; shape and strides are those that it had before

    @property
    def signature(self) -> tuple[object, ...]:
        """Everything that a plan depends on: two operands with equal signatures can be swapped."""
        return (
            *(self.shape, self.strides, self.dtype, self.fnuz, self.device),
            *(self.batch, self.batch_stride, self.b_format),
        )


def operand(array: Any, name: str = "array", stream: int | None = None) -> Operand:
    """View a NumPy array, torch tensor, or anything with DLPack or ``__cuda_array_interface__`` as a matrix or a batch.

    ``name`` is what errors call it; a DLPack producer is asked to make the data ready on ``stream``.
    Raises ArrayError for another kind of object, another rank than 2 or 3, or a dtype that no kernel knows.
    """
    if isinstance(array, np.ndarray):
        return _from_numpy(array, name)
    if isinstance(array, ShuffledB):
        return array.operand
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


@dataclass(frozen=True)
class ShuffledB:
    """A matrix B in the order that kernels of one ``b_format`` read, made by :meth:`Dispatcher.shuffle_b`.

    ``data`` holds its bytes: a NumPy array, or a tensor on the GPU that B was on. ``operand`` says what B was.
    """

    data: Any
    operand: Operand

    @property
    def shape(self) -> tuple[int, int]:
        """(k, n)."""
        return self.operand.shape

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that a plan depends on."""
        return self.operand.signature


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


def _extents(name: str, shape: Any) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3):
        raise ArrayError(f"{name} has shape {sizes}; allowed: two dimensions, or three for a batch of matrices")
    return sizes


def _in_elements(name: str, strides: Any, itemsize: int) -> tuple[int, ...]:
    if any(stride % itemsize for stride in strides):
        listed = " and ".join(map(str, strides))
        raise ArrayError(f"{name} has strides of {listed} bytes; allowed: multiples of {itemsize}")
    return tuple(stride // itemsize for stride in strides)


def _made(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, fnuz: bool, device: str, family: str,
    owner: Any, readonly: bool = False,
) -> Operand:  # fmt: skip
    """From an array of two or three dimensions."""
    batch, batch_stride = (shape[0], strides[0]) if len(shape) == 3 else (None, 0)
    two, steps = (shape[-2], shape[-1]), (strides[-2], strides[-1])
    return Operand(pointer, two, steps, dtype, fnuz, device, family, owner, readonly, batch, batch_stride)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1]
    for extent in shape[:0:-1]:
        steps.insert(0, steps[0] * extent)
    return tuple(steps)


def _from_numpy(array: np.ndarray[Any, Any], name: str) -> Operand:
    dtype, fnuz = dtypes.name_of(array.dtype)
    if not array.dtype.isnative:
        raise ArrayError(f"{name} is not in this machine's byte order; convert it with astype(dtype.newbyteorder('='))")
    shape, size = _extents(name, array.shape), array.itemsize
    strides = _in_elements(name, array.strides, size)
    if not array.flags.aligned:
        raise ArrayError(f"{name} is not aligned to its element size of {size} bytes; pass a copy")
    head = header_bytes()
    pointer = documented_address(array) if head is None else read_word(id(array) + head).value
    return _made(pointer, shape, strides, dtype, fnuz, "cpu", "numpy", array, not array.flags.writeable)


read_word = ctypes.c_uint64.from_address


@cache
def header_bytes() -> int | None:
    """Where, from its ``id``, a NumPy array keeps the address of its first element. None if that does not prove right.

    The public ways to that address cost microseconds. NumPy documents that it stands right behind the object's header
    (PyArrayObject in "Python types and C-structures" of its C API).
    """
    head = object.__basicsize__
    big = np.zeros((6, 7), np.float32)
    samples = (big, big[2:, 1:], big.T, np.zeros(3, np.int8), big.view(np.uint8)[1:, 4:])
    right = all(read_word(id(sample) + head).value == documented_address(sample) for sample in samples)
    return head if right else None


def documented_address(array: np.ndarray[Any, Any]) -> int:
    """Of the first element, by the public way."""
    pointer: int = array.__array_interface__["data"][0]
    return pointer


def _from_torch(tensor: Any, name: str) -> Operand:
    if tensor.layout is not sys.modules["torch"].strided:
        raise ArrayError(f"{name} is a tensor of layout {tensor.layout}; allowed: a dense (strided) one")
    dtype, fnuz = dtypes.name_of(tensor.dtype)
    device = tensor.device
    kind = device.type
    if kind == "cuda" and sys.modules["torch"].version.hip:
        kind = "hip"  # ROCm builds of torch call their devices cuda
    where = "cpu" if kind == "cpu" else f"{kind}:{device.index}"
    shape = _extents(name, tensor.shape)
    return _made(tensor.data_ptr(), shape, tuple(tensor.stride()), dtype, fnuz, where, "torch", tensor)


def _from_dlpack(array: Any, name: str, stream: int | None) -> Operand:
    view = dlpack.view(array, stream)
    family = type(array).__module__.partition(".")[0]
    dtype, fnuz = dtypes.name_of(view.dtype)
    shape = _extents(name, view.shape)
    readonly = family.startswith("jax")  # immutable, though an unversioned capsule cannot say so
    strides = view.strides or _dense(shape)
    return _made(view.pointer, shape, strides, dtype, fnuz, view.device, family, (array, view.capsule), readonly)


def _from_cuda_interface(array: Any, name: str) -> Operand:
    interface = array.__cuda_array_interface__
    dtype, fnuz = dtypes.name_of(np.dtype(interface["typestr"]))
    shape = _extents(name, interface["shape"])
    size = dtypes.ITEMSIZE[dtype]
    given = interface.get("strides")
    strides = _in_elements(name, given, size) if given else _dense(shape)
    pointer, readonly = interface["data"]
    # The interface does not tell the device; objects that know it say so, others are on the first one.
    ordinal = getattr(getattr(array, "device", None), "id", 0)
    family = type(array).__module__.partition(".")[0]
    return _made(pointer or 0, shape, strides, dtype, fnuz, f"cuda:{ordinal}", family, array, readonly)


def empty(like: Operand, shape: tuple[int, ...], dtype: str, row_major: bool, owner: Any = None) -> Any:
    """An uninitialised matrix, or batch, of the same array library and device; column-major if not ``row_major``.

    ArrayError if that library cannot be written to.
    """
    stored = shape if row_major else (*shape[:-2], shape[-1], shape[-2])
    if like.family == "numpy":
        same = owner is not None and like.dtype == dtype
        made: Any = np.empty(stored, owner.dtype if same else dtypes.numpy_dtype(dtype, like.fnuz))
    elif like.family == "torch":
        torch = sys.modules["torch"]
        made = torch.empty(stored, dtype=getattr(torch, _TORCH_NAMES[dtype]), device=owner.device)
    elif like.family == "cupy":
        made = sys.modules["cupy"].empty(stored, dtypes.numpy_dtype(dtype))
    else:
        raise ArrayError(f"cannot allocate a result beside a {like.family} array; pass out=")
    if row_major:
        return made
    if len(shape) == 2:
        return made.t() if like.family == "torch" else made.T
    return made.transpose(-1, -2) if like.family == "torch" else made.swapaxes(-1, -2)


_TORCH_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "bf8": "float8_e5m2",
    "int8": "int8",
    "int32": "int32",
}
