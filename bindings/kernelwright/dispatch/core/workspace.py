"""Scratch memory for launches, from the same library that allocated the operands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelwright.dispatch.core.errors import ArrayError

ALIGNMENT = 256  # what the C ABI asks for


def allocate(size: int, family: str, device: str) -> tuple[int, Any]:
    """An aligned address of ``size`` bytes and the object that owns it. ArrayError where nobody can allocate it."""
    padded = size + ALIGNMENT
    owner: Any
    if device == "cpu":
        owner = np.empty(padded, np.uint8)
        pointer = owner.__array_interface__["data"][0]
    elif family == "torch":
        torch = sys.modules["torch"]
        owner = torch.empty(padded, dtype=torch.uint8, device=device.replace("hip", "cuda"))
        pointer = owner.data_ptr()
    elif family == "cupy":
        owner = sys.modules["cupy"].empty(padded, np.uint8)
        pointer = owner.data.ptr
    else:
        raise ArrayError(
            f"this kernel needs {size} bytes of workspace on {device} and {family} cannot allocate them here; "
            "pass workspace="
        )
    return -(-pointer // ALIGNMENT) * ALIGNMENT, owner


def stream_source(family: str, device: str) -> Callable[[], int] | None:
    """What to ask for the stream on which the array library is working; None where it is always 0."""
    if device == "cpu":
        return None
    if family == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public way's time
        if raw is not None:
            return partial(raw, int(device.rpartition(":")[2]))
        where = device.replace("hip", "cuda")
        return lambda: int(torch.cuda.current_stream(where).cuda_stream)
    if family == "cupy":
        cuda = sys.modules["cupy"].cuda
        return lambda: int(cuda.get_current_stream().ptr)
    return None
