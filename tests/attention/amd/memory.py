"""Arrays that a simulated kernel may access, and launches of it with every check."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

from attention.amd.compiled import Compiled
from attention.masks import FULL, Window
from attention.reference import Forward
from kernelwright.codegen.dtypes import DType
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run.launch import Buffer, Simulator

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"fp32": 2e-6, "fp16": 2e-3, "bf16": 1.6e-2}
"""Errors relative to the largest element, of a result that is rounded once to the operands' type, twice."""
_EIGHT_BITS = {
    ("fp8", "ocp"): np.dtype(ml_dtypes.float8_e4m3fn),
    ("fp8", "fnuz"): np.dtype(ml_dtypes.float8_e4m3fnuz),
}
DESCALES = {"q": 0.031, "k": 0.027, "v": 0.023}
"""Factors of 8-bit operands: their numbers are as large as those of others, and stored ones far from 1."""
SCALE_O = 37.0


def element(made: Compiled, dtype: DType) -> np.dtype[Any]:
    """NumPy's type; 8-bit floats of gfx942 are FNUZ."""
    return DTYPES[dtype] if dtype in DTYPES else _EIGHT_BITS[str(dtype), made.arch.fp8_format]


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


def worst(actual: Array, wanted: Array) -> float:
    """The largest error; NaN and a wrong infinity are infinitely wrong."""
    actual = actual.astype(np.float64)
    finite = np.isfinite(wanted)
    if np.isnan(actual).any() or not (actual[~finite] == wanted[~finite]).all():
        return math.inf
    return float(np.abs(actual[finite] - wanted[finite]).max(initial=0.0))


def relative(actual: Array, wanted: Array) -> float:
    """The same, relative to the largest element that is wanted."""
    return worst(actual, wanted) / max(float(np.abs(wanted).max(initial=0.0)), 1e-30)


class Factors:
    """Factors of 8-bit operands in memory, 1 where a kernel has none, and how its operands are drawn with them."""

    def __init__(self, made: Compiled, memory: Memory) -> None:
        spec = made.spec
        self.scaled = spec.qscale != "none" or spec.static_quant
        self.narrow = spec.dtype.inputs == DType.FP8
        self.dtype = element(made, spec.dtype.inputs)
        self.of = DESCALES if self.scaled else dict.fromkeys("qkv", 1.0)
        self.written_by(made)
        named = {f"descale_{name}": value for name, value in self.of.items()} if self.scaled else {}
        numbers = {**named, **({"scale_o": self.of_o} if self.of_o != 1 else {})}
        self._held = [np.array([value], np.float32) for value in numbers.values()]
        self.given = {name: memory.read(name, one) for name, one in zip(numbers, self._held, strict=True)}

    def written_by(self, made: Compiled) -> None:
        """Another kernel writes O."""
        self.result = element(made, made.spec.dtype.output)
        self.of_o = SCALE_O if made.spec.dtype.output == DType.FP8 else 1.0

    def draw(self, rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Array:
        """Stored numbers of q, k or v, normally distributed where their factor is applied."""
        return (rng.standard_normal(shape) / self.of[name]).astype(self.dtype)

    def values(self, name: str, stored: Array) -> Array:
        """What stored numbers stand for."""
        return stored.astype(np.float64) * float(np.float32(self.of[name])) if self.narrow else stored

    def error(self, o: Array, wanted: Forward, v: Array) -> float:
        """Error of O (heads x rows x hdim), relative to the largest element.

        8-bit operands: relative to the sum of the absolute values of all terms, each of whose probabilities is rounded
        to 4 bits; tolerance :data:`NARROW`.
        """
        if not self.narrow:
            return relative(o, wanted.o)
        terms = wanted.p @ np.repeat(np.abs(v), len(wanted.p) // len(v), axis=0)
        unscaled = o.astype(np.float64) / self.of_o
        if np.isnan(unscaled).any():
            return math.inf
        steps = np.abs(unscaled - wanted.o) - (np.abs(wanted.o) / 16 if self.result == self.dtype else 0)
        return float((steps / (terms + np.abs(wanted.o).max(initial=0.0) / 64 + 1e-30)).max(initial=0.0))


NARROW = 2**-4


def mask_number(window: Window) -> int:
    """What kernels are told: 0 no mask, 1 from the top left, 2 from the bottom right."""
    return 0 if window == FULL else 2 if window.bottom_right else 1


def starts(lengths: tuple[int, ...]) -> Array:
    """Where each request begins among the rows of all."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
