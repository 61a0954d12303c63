"""Arrays of any library as pointer, shape and strides, without a copy and without importing that library."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.ma import MaskedArray  # np.ma would be imported by the first call

from kernelwright.dispatch.arrays import dlpack, dtypes
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.device import cuda_device_of
from kernelwright.dispatch.core.errors import ArrayError


class ArrayView(NamedTuple):
    """An array in memory.

    :ivar pointer: address of the first element.
    :ivar shape: extents.
    :ivar strides: distances between neighbours in elements, one for each dimension.
    :ivar dtype: element type, such as ``fp16``.
    :ivar fnuz: whether 8-bit floats are in an FNUZ format instead of the OCP one.
    :ivar device: ``cpu``, ``cuda:0``, ``hip:0``, …
    :ivar family: the array library, such as ``numpy`` or ``torch``.
    :ivar owner: keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    fnuz: bool
    device: str
    family: str
    owner: Any
    readonly: bool = False

    def __repr__(self) -> str:
        """Shape, element type and place, without the elements."""
        where = f"{self.family} on {self.device} at {self.pointer:#x}"
        return f"<ArrayView {self.shape} {self.dtype}, strides {self.strides}, {where}>"

    @property
    def dense(self) -> bool:
        """Whether elements lie side by side in row-major order, as those of an empty array do."""
        reach = 1
        for stride, extent in zip(reversed(self.strides), reversed(self.shape), strict=True):
            if extent > 1 and stride != reach:
                return 0 in self.shape
            reach *= extent
        return True


class Prepared:
    """Base of operands rearranged by a kernel's own code; a plan depends on the key as well as on the data."""

    data: Any
    """The array that holds the bytes."""

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that a plan depends on beyond the data's metadata."""
        raise NotImplementedError


def view(array: Any, name: str = "array", stream: int | None = None) -> ArrayView:
    """View a NumPy array, a torch tensor, or an object with ``__dlpack__`` or ``__cuda_array_interface__``.

    ``name`` is what errors call it. A DLPack producer is asked to make the data ready on ``stream``; an object with
    ``__cuda_array_interface__`` that names another stream is refused. Raises ArrayError for another kind of object,
    and for a dtype that no kernel has.
    """
    if isinstance(array, np.ndarray):
        return _from_numpy(array, name)
    if is_torch(array):
        return _from_torch(array, name)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_cuda_interface(array, name, stream)
    raise ArrayError(
        f"{name} is a {type(array).__name__}; allowed: a NumPy array, a torch tensor, or an object with __dlpack__ or "
        "__cuda_array_interface__"
    )


_TORCH_TYPES: dict[type, bool] = {}  # whether a type met before is torch.Tensor or a subclass


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor; torch is not imported to find out."""
    kind = type(array)
    known = _TORCH_TYPES.get(kind)
    if known is None:
        known = any(base.__module__.partition(".")[0] == "torch" and hasattr(base, "data_ptr") for base in kind.__mro__)
        _TORCH_TYPES[kind] = known
    return known


def _in_elements(name: str, strides: Any, itemsize: int) -> tuple[int, ...]:
    if any(stride % itemsize for stride in strides):
        listed = " and ".join(map(str, strides))
        raise ArrayError(f"{name} has strides of {listed} bytes; allowed: multiples of {itemsize}")
    return tuple(stride // itemsize for stride in strides)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def _from_numpy(array: np.ndarray[Any, Any], name: str) -> ArrayView:
    if isinstance(array, MaskedArray):
        raise ArrayError(f"{name} is a masked array, and kernels ignore masks; pass {name}.filled(value)")
    dtype, fnuz = dtypes.name_of(array.dtype, name)
    _check_byte_order(array.dtype, name)
    size = array.itemsize
    strides = _in_elements(name, array.strides, size)
    if not array.flags.aligned:
        raise ArrayError(f"{name} is not aligned to its element size of {size} bytes; pass a copy")
    readonly = not array.flags.writeable
    address = native.extension().array_address(array)
    return ArrayView(address, array.shape, strides, dtype, fnuz, "cpu", "numpy", array, readonly)


def _check_byte_order(dtype: np.dtype[Any], name: str) -> None:
    if not dtype.isnative:
        raise ArrayError(f"{name} is not in this machine's byte order; convert it with astype(dtype.newbyteorder('='))")


def _from_torch(tensor: Any, name: str) -> ArrayView:
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided:
        raise ArrayError(f"{name} is a tensor of layout {tensor.layout}; allowed: a dense (strided) one")
    dtype, fnuz = dtypes.name_of(tensor.dtype, name)
    if tensor.is_neg():  # conjugate tensors are complex: name_of() has refused them
        raise ArrayError(f"{name} is a negative view, whose memory holds the opposite sign; pass {name}.resolve_neg()")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArrayError(
            f"{name} requires grad, but autograd does not record kernels; pass {name}.detach(), or call under "
            "torch.no_grad()"
        )
    device = tensor.device
    kind = device.type
    if kind == "cuda" and torch.version.hip:
        kind = "hip"  # ROCm builds of torch call their devices cuda
    where = "cpu" if kind == "cpu" else f"{kind}:{device.index}"
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return ArrayView(tensor.data_ptr(), shape, strides, dtype, fnuz, where, "torch", tensor)


def _from_dlpack(array: Any, stream: int | None) -> ArrayView:
    tensor = dlpack.view(array, stream)
    family = type(array).__module__.partition(".")[0]
    dtype, fnuz = dtypes.name_of(tensor.dtype)
    readonly = family.startswith("jax")  # immutable, though an unversioned capsule cannot say so
    strides, owner = tensor.strides or _dense(tensor.shape), (array, tensor.capsule)
    return ArrayView(tensor.pointer, tensor.shape, strides, dtype, fnuz, tensor.device, family, owner, readonly)


def _from_cuda_interface(array: Any, name: str, stream: int | None) -> ArrayView:
    interface = array.__cuda_array_interface__
    element = np.dtype(interface["typestr"])
    dtype, fnuz = dtypes.name_of(element, name)
    _check_byte_order(element, name)
    if interface.get("mask") is not None:
        raise ArrayError(f"{name} has a mask, and kernels ignore masks; pass an array without one")
    producer = interface.get("stream")
    # 0 and 1 are both the default stream.
    if None not in (producer, stream) and producer != stream and {producer, stream} != {0, 1}:
        raise ArrayError(
            f"{name} is made ready on stream {producer}, the launch is on {stream}; pass stream={producer}"
        )
    shape = tuple(int(extent) for extent in interface["shape"])
    size = dtypes.ITEMSIZE[dtype]
    given = interface.get("strides")
    strides = _in_elements(name, given, size) if given else _dense(shape)
    pointer, readonly = interface["data"]
    # The interface does not tell the device; without a driver or elements, the object's own word must do.
    ordinal = cuda_device_of(pointer or 0)
    if ordinal is None:
        ordinal = getattr(getattr(array, "device", None), "id", 0)
    family = type(array).__module__.partition(".")[0]
    return ArrayView(pointer or 0, shape, strides, dtype, fnuz, f"cuda:{ordinal}", family, array, readonly)
