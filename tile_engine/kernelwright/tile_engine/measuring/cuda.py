"""Memory, events and graphs of one CUDA device, through its driver alone: a GPU box needs no array library.

Calls are those of the CUDA Driver API (https://docs.nvidia.com/cuda/cuda-driver-api/).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.dispatch import DeviceError
from kernelwright.tile_engine.measuring.clocks import cuda_clocks

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: a launcher may load its module while a stream is captured
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


def load_driver() -> Any:
    """libcuda. DeviceError where it is missing."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(f"the CUDA driver cannot be loaded: {error}") from error


class CudaDevice:
    """One device, its primary context current in the calling thread, and one stream. Used by one thread."""

    def __init__(self, ordinal: int, driver: Any = None) -> None:
        """DeviceError if the driver or the device is missing."""
        self._driver, self._ordinal = driver or load_driver(), ordinal
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        handle = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(handle), _NON_BLOCKING)
        self._stream = handle
        self._start, self._end = self._event(), self._event()

    @property
    def stream(self) -> int:
        """The stream as an integer, as plans take it."""
        return int(self._stream.value or 0)

    def allocate(self, nbytes: int) -> int:
        """Address of device memory that lives as long as the process. DeviceError if there is not enough."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        return address.value

    def upload(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Copy the bytes of an array in the order in which they lie in memory."""
        flat = _bytes_of(array)
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(flat), ctypes.c_size_t(array.nbytes))

    def download(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copy into an array, when the stream is done."""
        self.synchronize()
        flat = _bytes_of(array)
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(flat), ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))

    def synchronize(self) -> None:
        """Wait for the stream. DeviceError if a launch on it has failed."""
        self._call("cuStreamSynchronize", self._stream)

    def capture(self, work: Callable[[], None]) -> Callable[[], float]:
        """A function that replays what ``work`` launches on the stream, and returns its seconds on the device."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, _RELAXED)
        try:
            work()
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))

        def replay() -> float:
            self._call("cuEventRecord", self._start, self._stream)
            self._call("cuGraphLaunch", executable, self._stream)
            self._call("cuEventRecord", self._end, self._stream)
            self._call("cuEventSynchronize", self._end)
            milliseconds = ctypes.c_float()
            self._call("cuEventElapsedTime", ctypes.byref(milliseconds), self._start, self._end)
            return milliseconds.value / 1e3

        return replay

    def clocks(self) -> str:
        """See :func:`kernelwright.tile_engine.measuring.clocks.cuda_clocks`."""
        return cuda_clocks(self._driver, self._ordinal)

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def _call(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._driver, name)(*arguments):
            raise DeviceError(f"{name} failed with CUDA error {status}")


def _bytes_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array without gaps, in any order of its axes."""
    if array.size and not (array.flags.c_contiguous or array.swapaxes(-1, -2).flags.c_contiguous):
        raise ValueError("an array with gaps cannot be copied at once")
    return int(array.ctypes.data)
