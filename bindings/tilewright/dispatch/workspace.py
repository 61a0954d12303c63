"""Scratch memory for launches, from the same library that allocated the operands."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.dispatch.errors import ArrayError

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


def current_stream(family: str, device: str) -> int:
    """The stream on which the array library is working, 0 for the default one and on CPU."""
    if device == "cpu":
        return 0
    if family == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public way's time
        if raw is not None:
            return int(raw(int(device.rpartition(":")[2])))
        return int(torch.cuda.current_stream(device.replace("hip", "cuda")).cuda_stream)
    if family == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0
