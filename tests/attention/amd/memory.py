"""Arrays that a simulated kernel may access, and launches of it with every check."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

from attention.amd.compiled import Compiled
from attention.masks import FULL, Window
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run.launch import Buffer, Simulator

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"fp32": 2e-6, "fp16": 2e-3, "bf16": 1.6e-2}
"""Errors relative to the largest element, of a result that is rounded once to the operands' type, twice."""

CHECKS = Checks(races=True, waits=True, equal_writes=True)
"""Waves of combine and backward kernels all write the same sums to the same place."""


class Memory:
    """Buffers of launches by the names of their arrays."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Array, bool]] = {}

    def read(self, name: str, array: Array) -> int:
        """The address of an array that kernels only read."""
        self._held[name] = (array, False)
        return array.ctypes.data

    def write(self, name: str, array: Array) -> int:
        """The address of an array that kernels also write."""
        self._held[name] = (array, True)
        return array.ctypes.data

    def launch(
        self,
        made: Compiled,
        arguments: ctypes.Structure,
        grid: tuple[int, int, int],
        *,
        function: str | None = None,
        block: int | None = None,
    ) -> None:
        """Run one of a kernel's functions to its end; Fault for what it does wrong."""
        Simulator(checks=CHECKS).launch(
            made.image,
            function or made.function,
            grid=grid,
            block=(block or made.report["block_size"], 1, 1),
            arguments=bytes(arguments),
            buffers=[
                Buffer(array.ctypes.data, array.nbytes, writable=writable, name=name)
                for name, (array, writable) in self._held.items()
                if array.nbytes
            ],
        )


def poisoned(shape: tuple[int, ...], dtype: Any) -> Array:
    """NaN everywhere."""
    return np.full(shape, np.nan).astype(dtype)


def worst(found: Array, wanted: Array) -> float:
    """The largest error; NaN and a wrong infinity are infinitely wrong."""
    found = found.astype(np.float64)
    finite = np.isfinite(wanted)
    if np.isnan(found).any() or not (found[~finite] == wanted[~finite]).all():
        return math.inf
    return float(np.abs(found[finite] - wanted[finite]).max(initial=0.0))


def relative(found: Array, wanted: Array) -> float:
    """The same, relative to the largest element that is wanted."""
    return worst(found, wanted) / max(float(np.abs(wanted).max(initial=0.0)), 1e-30)


def mask_number(window: Window) -> int:
    """What kernels are told: 0 no mask, 1 from the top left, 2 from the bottom right."""
    return 0 if window == FULL else 2 if window.bottom_right else 1


def starts(lengths: tuple[int, ...]) -> Array:
    """Where each request begins among the rows of all."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
