"""Allocate results with the array library of their operands, on their device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.workspace import like_nothing


def allocator(family: str, shape: tuple[int, ...], dtype: str, owner: Any, fnuz: bool = False) -> Callable[[], Any]:
    """Return a function that makes uninitialised dense arrays of ``shape`` beside ``owner``, an array of ``family``.

    NumPy arrays take the dtype object of ``owner`` where it is called ``dtype`` too: NumPy itself has no bf16 or fp8.
    Raises ArrayError for a library whose arrays cannot be allocated here.
    """
    if family == "numpy":
        same = owner is not None and dtypes.name_of(owner.dtype)[0] == dtype
        return partial(np.empty, shape, owner.dtype if same else dtypes.numpy_dtype(dtype, fnuz))
    if family == "torch":
        name = _TORCH_FNUZ.get(dtype) if fnuz else None
        return like_nothing(shape, name or _TORCH_NAMES[dtype], owner.device)
    if family == "cupy":
        return partial(_cupy_empty, owner.device, shape, dtypes.numpy_dtype(dtype))
    raise ArrayError(f"cannot allocate a result beside a {family} array; pass out=")


def _cupy_empty(device: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocate on ``device``: CuPy uses its current device, and its devices are context managers that set it."""
    with device:
        return sys.modules["cupy"].empty(shape, dtype)


_TORCH_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "bf8": "float8_e5m2",
    "int8": "int8",
    "int32": "int32",
}
_TORCH_FNUZ = {"fp8": "float8_e4m3fnuz", "bf8": "float8_e5m2fnuz"}
