"""Memory, events and graphs of one GPU, through the vendor's own runtime: no array library is needed.

The CUDA Driver API (https://docs.nvidia.com/cuda/cuda-driver-api/) and the HIP Runtime API
(https://rocm.docs.amd.com/projects/HIP/) provide the same functions here, with the same arguments; their names differ
in the prefix and a few words.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.dispatch import DeviceError
from kernelwright.tile_engine.measuring.clocks import cuda_clocks, hip_clocks

_RELAXED = 2  # capture mode: a launcher may load its module during stream capture
_NON_BLOCKING = 1  # stream flag
_FUNCTIONS = {
    "synchronize": "StreamSynchronize", "end": "StreamEndCapture", "instantiate": "GraphInstantiateWithFlags",
    "replay": "GraphLaunch", "record": "EventRecord", "wait": "EventSynchronize", "elapsed": "EventElapsedTime",
}  # fmt: skip
_CUDA = {
    "stream": "StreamCreate", "allocate": "MemAlloc_v2", "upload": "MemcpyHtoD_v2", "download": "MemcpyDtoH_v2",
    "begin": "StreamBeginCapture_v2", "event": "EventCreate",
}  # fmt: skip
_HIP = {
    "stream": "StreamCreateWithFlags", "allocate": "Malloc", "upload": "MemcpyHtoD", "download": "MemcpyDtoH",
    "begin": "StreamBeginCapture", "event": "EventCreateWithFlags",
}  # fmt: skip
_HIP_RUNTIMES = ("libamdhip64.so.7", "libamdhip64.so.6")  # in the order in which kernel libraries look for them


def load_driver() -> Any:
    """Load libcuda. Raises DeviceError if it is missing."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(f"the CUDA driver cannot be loaded: {error}") from error


def load_runtime() -> Any:
    """Load libamdhip64, the file that kernel libraries open. Raises DeviceError if it is missing."""
    chosen = os.environ.get("KERNELWRIGHT_HIP_LIBRARY")
    said = ""
    for name in (chosen,) if chosen else _HIP_RUNTIMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            said = str(error)
    raise DeviceError(
        f"the HIP runtime (libamdhip64.so.7 or .6) cannot be loaded: {said}; set KERNELWRIGHT_HIP_LIBRARY to its file"
    )


class Gpu:
    """One device and one of its streams, current in the calling thread. Used by one thread."""

    def __init__(self, runtime: Any, kind: str, prefix: str, names: dict[str, str]) -> None:
        """Create the stream. Raises DeviceError if a call fails.

        :param kind: name of the runtime in errors.
        :param prefix: prefix of its function names; ``names`` are the names, without it, that differ between runtimes.
        """
        self._runtime, self._kind = runtime, kind
        self._names = {what: prefix + name for what, name in (_FUNCTIONS | names).items()}
        handle = ctypes.c_void_p()
        self._do("stream", ctypes.byref(handle), _NON_BLOCKING)
        self._stream = handle
        self._start, self._end = self._event(), self._event()

    @property
    def stream(self) -> int:
        """The stream as an integer, as plans take it."""
        return int(self._stream.value or 0)

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory for the life of the process. Returns the address. DeviceError if out of memory."""
        address = ctypes.c_uint64()
        self._do("allocate", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        return address.value

    def upload(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Copy the bytes of an array in memory order."""
        flat = _bytes_of(array)
        self._do("upload", ctypes.c_uint64(address), ctypes.c_void_p(flat), ctypes.c_size_t(array.nbytes))

    def download(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copy into an array once the stream is done."""
        self.synchronize()
        flat = _bytes_of(array)
        self._do("download", ctypes.c_void_p(flat), ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))

    def synchronize(self) -> None:
        """Wait for the stream. Raises DeviceError if a launch on it has failed."""
        self._do("synchronize", self._stream)

    def capture(self, work: Callable[[], None]) -> Callable[[], float]:
        """Return a function that replays ``work``'s launches on the stream and returns device seconds."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("begin", self._stream, _RELAXED)
        try:
            work()
        finally:
            self._do("end", self._stream, ctypes.byref(graph))
        self._do("instantiate", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))

        def replay() -> float:
            self._do("record", self._start, self._stream)
            self._do("replay", executable, self._stream)
            self._do("record", self._end, self._stream)
            self._do("wait", self._end)
            milliseconds = ctypes.c_float()
            self._do("elapsed", ctypes.byref(milliseconds), self._start, self._end)
            return milliseconds.value / 1e3

        return replay

    def clocks(self) -> str:
        """Clocks in MHz; empty if unknown."""
        raise NotImplementedError

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._do("event", ctypes.byref(event), 0)
        return event

    def _do(self, what: str, *arguments: Any) -> None:
        self._call(self._names[what], *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._runtime, name)(*arguments):
            raise DeviceError(f"{name} failed with {self._kind} error {status}")


class CudaDevice(Gpu):
    """A CUDA device, with its primary context."""

    def __init__(self, ordinal: int, driver: Any = None) -> None:
        """Open the device. Raises DeviceError if the driver or the device is missing."""
        self._runtime, self._kind, self._ordinal = driver or load_driver(), "CUDA", ordinal
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        super().__init__(self._runtime, self._kind, "cu", _CUDA)

    def clocks(self) -> str:
        """See :func:`kernelwright.tile_engine.measuring.clocks.cuda_clocks`."""
        return cuda_clocks(self._runtime, self._ordinal)


class HipDevice(Gpu):
    """An AMD GPU."""

    def __init__(self, ordinal: int, runtime: Any = None) -> None:
        """Open the device. Raises DeviceError if the runtime or the device is missing."""
        self._runtime, self._kind, self._ordinal = runtime or load_runtime(), "HIP", ordinal
        self._call("hipSetDevice", ordinal)
        super().__init__(self._runtime, self._kind, "hip", _HIP)

    def clocks(self) -> str:
        """See :func:`kernelwright.tile_engine.measuring.clocks.hip_clocks`."""
        return hip_clocks(self._runtime, self._ordinal)


def _bytes_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array without gaps, in any axis order."""
    if array.size and not (array.flags.c_contiguous or array.swapaxes(-1, -2).flags.c_contiguous):
        raise ValueError("an array with gaps cannot be copied at once")
    return int(array.ctypes.data)
