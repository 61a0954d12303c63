"""Workspaces and streams of launches, from the array library of the operands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelwright.dispatch.core.device import cuda_device_of
from kernelwright.dispatch.core.errors import ArrayError

ALIGNMENT = 256  # bytes, by the C ABI


def check_family(size: int, family: str, device: str) -> None:
    """ArrayError for an array library that cannot allocate ``size`` bytes on ``device``."""
    if device != "cpu" and family not in ("torch", "cupy"):
        raise ArrayError(
            f"this kernel needs {size} bytes of workspace on {device} and {family} cannot allocate them here; "
            "pass workspace="
        )


def allocate(size: int, family: str, device: str, stream: int) -> tuple[int, Any]:
    """The aligned address of ``size`` bytes on ``device`` and the object that owns them.

    On a GPU the memory belongs to ``stream``: once it is freed, its library uses it again only for work that is behind
    the stream's own. ArrayError for an array library that cannot allocate there.
    """
    check_family(size, family, device)
    padded = size + ALIGNMENT
    owner: Any
    if device == "cpu":
        owner = np.empty(padded, np.uint8)
        pointer = owner.__array_interface__["data"][0]
    elif family == "torch":
        torch = sys.modules["torch"]
        where = device.replace("hip", "cuda")
        with torch.cuda.stream(_torch_stream(torch.cuda, where, stream)):
            owner = torch.empty(padded, dtype=torch.uint8, device=where)
        pointer = owner.data_ptr()
    else:
        cuda, ordinal = sys.modules["cupy"].cuda, ordinal_of(device)
        on_stream = cuda.ExternalStream(stream, ordinal) if stream else cuda.Stream.null
        with cuda.Device(ordinal), on_stream:  # CuPy allocates on the current device and stream
            owner = sys.modules["cupy"].empty(padded, np.uint8)
        pointer = owner.data.ptr
    return -(-pointer // ALIGNMENT) * ALIGNMENT, owner


def _torch_stream(cuda: Any, device: str, stream: int) -> Any:
    """PyTorch's object for a stream. It would not take 0 and 1 (``cudaStreamLegacy``) for the default stream."""
    return cuda.ExternalStream(stream, device=device) if stream > 1 else cuda.default_stream(device)


def check_device(address: Any, device: str) -> None:
    """ArrayError for the address of a workspace in the memory of another CUDA device than ``device``."""
    if device.startswith("cuda:") and isinstance(address, int) and 0 <= address < 1 << 64:
        found = cuda_device_of(address)
        if found is not None and found != ordinal_of(device):
            raise ArrayError(f"workspace is on cuda:{found}; allowed for this plan: {device}")


def ordinal_of(device: str) -> int:
    """The number in a name such as ``cuda:1``."""
    return int(device.rpartition(":")[2])


def stream_source(family: str, device: str) -> Callable[[], int] | None:
    """A function that returns the array library's current stream; None where that is always the default one."""
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
