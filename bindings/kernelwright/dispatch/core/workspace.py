"""Workspaces and streams of launches, from the array library of the operands."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from kernelwright.dispatch.core.device import cuda_device_of, cuda_place
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region

ALIGNMENT = 256  # bytes, as the C ABI requires
ADDRESS_CHECK = "KERNELWRIGHT_ADDRESS_CHECK"
_LEGACY_STREAMS = (0, 1)  # default streams, which cannot be captured
_CAPTURE_STATUS = {
    "cuda": ("cuStreamIsCapturing", ("libcuda.so.1",)),
    "hip": ("hipStreamIsCapturing", ("libamdhip64.so.7", "libamdhip64.so.6")),
}


def check_family(size: int, family: str, device: str) -> None:
    """Raise ArrayError for an array library that cannot allocate ``size`` bytes on ``device``."""
    if device != "cpu" and family not in ("torch", "cupy"):
        raise ArrayError(
            f"this kernel needs {size} bytes of workspace on {device} and {family} cannot allocate them here; "
            "pass workspace="
        )


def allocate(size: int, family: str, device: str, stream: int | None = None) -> tuple[int, Any]:
    """The aligned address of ``size`` bytes on ``device`` and the object that owns them.

    On a GPU the memory belongs to ``stream``: once freed, its library reuses it only for later work on that stream.
    Raises ArrayError for an array library that cannot allocate there.
    """
    check_family(size, family, device)
    padded = size + ALIGNMENT
    owner: Any
    if device == "cpu":
        owner = np.empty(padded, np.uint8)
        pointer = owner.__array_interface__["data"][0]
    elif family == "torch":
        torch = sys.modules["torch"]
        with on_stream(stream, family, device):
            owner = torch.empty(padded, dtype=torch.uint8, device=device.replace("hip", "cuda"))
        pointer = owner.data_ptr()
    else:
        cupy = sys.modules["cupy"]
        with on_stream(stream, family, device), cupy.cuda.Device(ordinal_of(device)):  # CuPy's current device
            owner = cupy.empty(padded, np.uint8)
        pointer = owner.data.ptr
    return -(-pointer // ALIGNMENT) * ALIGNMENT, owner


def like_nothing(shape: tuple[int, ...], dtype: str, device: Any) -> Callable[[], Any]:
    """Return a function like torch's ``empty`` that takes half the time: it parses no shape, dtype or device.

    The tensors are like a template whose memory has been freed. ``dtype`` is torch's name.
    """
    torch = sys.modules["torch"]
    like = torch.empty(shape, dtype=getattr(torch, dtype), device=device)
    like.untyped_storage().resize_(0)
    return partial(torch.empty_like, like)


class Scratch:
    """Workspaces for single launches on a GPU, from torch."""

    __slots__ = ("_current", "_device", "_make")

    def __init__(self, size: int, device: str) -> None:
        """Prepare workspaces of ``size`` bytes each."""
        self._device = device
        self._current = stream_source("torch", device)
        self._make = like_nothing((size + ALIGNMENT,), "uint8", device.replace("hip", "cuda"))

    def allocate(self, stream: int) -> tuple[int, Any]:
        """The aligned address of memory that belongs to ``stream``, and its owner: see :func:`allocate`."""
        if self._current is not None and self._current() == stream:
            owner = self._make()
        else:
            with on_stream(stream, "torch", self._device):
                owner = self._make()
        return -(-owner.data_ptr() // ALIGNMENT) * ALIGNMENT, owner


def check_device(address: Any, device: str) -> None:
    """Raise ArrayError for a workspace address in the memory of another CUDA device than ``device``."""
    if device.startswith("cuda:") and isinstance(address, int) and 0 <= address < 1 << 64:
        ordinal = cuda_device_of(address)
        if ordinal is not None and ordinal != ordinal_of(device):
            raise ArrayError(f"workspace is on cuda:{ordinal}; allowed for this plan: {device}")


def check_addresses(regions: Iterable[Region], device: str) -> None:
    """Raise ArrayError if memory of a launch on a CUDA device lies in host memory or on another device.

    KERNELWRIGHT_ADDRESS_CHECK=off accepts any address, such as one in pinned host memory. Null is left to the kernel;
    memory of other kinds of devices is not checked.
    """
    if not device.startswith("cuda:") or os.environ.get(ADDRESS_CHECK) == "off":
        return
    for region in regions:
        place = cuda_place(region.address) if region.address and region.nbytes else None
        if place not in (None, device, "managed memory"):
            where = place.replace("cuda", "memory of cuda")
            raise ArrayError(
                f"{region.name} is at {region.address:#x}, in {where}; allowed for this plan: memory of {device}; "
                f"{ADDRESS_CHECK}=off takes any address"
            )


def ordinal_of(device: str) -> int:
    """The number in a name such as ``cuda:1``."""
    return int(device.rpartition(":")[2])


def stream_source(family: str, device: str) -> Callable[[], int] | None:
    """A function that returns the array library's current stream; None if that is always the default one."""
    if device == "cpu":
        return None
    if family == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # takes a tenth of the public function's time
        if raw is not None:
            return partial(raw, ordinal_of(device))
        where = device.replace("hip", "cuda")
        return lambda: int(torch.cuda.current_stream(where).cuda_stream)
    if family == "cupy":
        cuda = sys.modules["cupy"].cuda
        return lambda: int(cuda.get_current_stream(ordinal_of(device)).ptr)
    return None


def common_stream(families: Iterable[str], device: str) -> int:
    """The common current stream of the array libraries on a GPU; the default one, 0, if none has a current stream.

    Raises ArrayError if they differ: the launch could overtake the producers of its operands.
    """
    sources = {family: stream_source(family, device) for family in families}
    current = {family: source() for family, source in sorted(sources.items()) if source is not None}
    if len({*current.values()}) > 1:
        listed = ", ".join(f"{stream:#x} of {family}" for family, stream in current.items())
        raise ArrayError(
            f"current streams differ: {listed}; make them one, or pass stream= once the operands are ready"
        )
    return next(iter(current.values()), 0)


def is_capturing(stream: int, device: str) -> bool:
    """Whether launches on a GPU stream are captured in a graph, which runs them later, and often."""
    if stream in _LEGACY_STREAMS:
        return False
    ask, status = capture_status(device.partition(":")[0]), ctypes.c_int()
    return ask is not None and ask(ctypes.c_void_p(stream), ctypes.byref(status)) == 0 and status.value != 0


@cache
def capture_status(kind: str) -> Callable[..., int] | None:
    """The runtime's function for :func:`is_capturing`, from the copy that the array library loaded; None if none is."""
    name, files = _CAPTURE_STATUS[kind]
    for file in (os.environ.get("KERNELWRIGHT_HIP_LIBRARY") if kind == "hip" else None, *files):
        if file:
            try:
                query: Callable[..., int] = getattr(ctypes.CDLL(file, os.RTLD_NOLOAD | os.RTLD_NOW), name)
            except (OSError, AttributeError):
                continue
            return query
    return None


@contextmanager
def on_stream(stream: int | None, family: str, device: str) -> Iterator[None]:
    """Make ``stream`` the array library's current one, so that its allocations and copies are ordered on it.

    Does nothing if it is already current, for None, and for libraries without a current stream.
    """
    current = stream_source(family, device)
    if stream is None or current is None or current() == stream:
        yield
        return
    default = stream in _LEGACY_STREAMS
    cuda = sys.modules[family].cuda
    if family == "torch":
        where = device.replace("hip", "cuda")
        with cuda.stream(cuda.default_stream(where) if default else cuda.ExternalStream(stream, device=where)):
            yield
    else:  # CuPy's current stream is that of its current device
        ordinal = ordinal_of(device)
        with cuda.Device(ordinal), cuda.Stream.null if default else cuda.ExternalStream(stream, ordinal):
            yield
