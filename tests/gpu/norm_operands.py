"""Memory of a CUDA device for tests/norm/gpu_cases.py."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from places import DEVICE

_BITS = {1: np.int8, 2: np.int16, 4: np.int32}
_TYPES = {
    "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "int8": torch.int8,
    "float8_e4m3fn": torch.float8_e4m3fn,
}  # fmt: skip


class OnDevice:
    """See ``Memory``. Torch's tensors, by way of their bits, since torch knows no arrays of bf16 or fp8."""

    def send(self, memory: np.ndarray[Any, Any]) -> torch.Tensor:
        """A copy of one dimension, on the device."""
        bits = torch.from_numpy(memory.view(_BITS[memory.itemsize]).copy()).to(DEVICE)
        return bits.view(_TYPES[memory.dtype.name])

    def rows(self, sent: torch.Tensor, first: int, shape: tuple[int, int], stride: int) -> torch.Tensor:
        """The rows that begin at an element of it."""
        return sent.as_strided(shape, (stride, 1), first)

    def fetch(self, sent: torch.Tensor) -> np.ndarray[Any, Any]:
        """Its contents."""
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[sent.element_size()]
        name = str(sent.dtype).removeprefix("torch.")
        return sent.view(bits).cpu().numpy().view(getattr(ml_dtypes, name, None) or name)
