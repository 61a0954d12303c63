"""Operands of matrix instructions as matrices: A and B from registers, the accumulator C, and the result D."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import File, Operand
from kernelwright.simulator.code.matrix_shapes import Index, Shape
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions import float8
from kernelwright.simulator.machine.operands import constant, row_of
from kernelwright.simulator.machine.wave import Wave

Matrix = NDArray[Any]
FLOAT16: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
_SMALLEST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": np.float32(2.0**-126)}  # normal numbers


@cache
def values_of(target: Target, kind: str) -> NDArray[np.float64]:
    """The value of each bit pattern of ``fp8``, ``bf8``, ``f16`` or ``bf16`` in the target's matrix instructions."""
    if kind in ("fp8", "bf8"):
        dtype = float8.dtype(target, kind)
        bits: NDArray[Any] = np.arange(256, dtype=np.uint8)
    else:
        dtype, bits = FLOAT16[kind], np.arange(65536, dtype=np.uint16)
    with np.errstate(all="ignore"):  # signalling NaNs
        values: NDArray[np.float64] = bits.view(dtype).astype(np.float64)
    if target.instructions == "gfx90a":
        values[np.abs(values) < _SMALLEST[kind]] *= 0
    return values


def source(
    operand: Operand, kind: str, registers: int, index: Index, target: Target, signed: bool
) -> Callable[[Wave], Matrix]:
    """Return a reader of A (or B) as a matrix of ``index``'s shape, in fp64 (fp32 for integers: sums are exact)."""
    if operand.file not in (File.VGPR, File.AGPR):
        raise Unmodelled(f"a matrix operand {operand}")
    row = row_of(operand)
    rows = slice(row, row + registers)
    if kind in FLOAT16:
        values = values_of(target, kind)
        return lambda wave: values.take(wave.halves[rows].take(index))
    if kind == "f32":
        return lambda wave: wave.singles[rows].take(index).astype(np.float64)
    if kind == "xf32":

        def reduced(wave: Wave) -> Matrix:
            if (wave.v[rows] & np.uint32(0x1FFF)).any():
                raise Unmodelled("an xf32 operand with more than 10 bits of mantissa; its rounding is not documented")
            return wave.singles[rows].take(index).astype(np.float64)

        return reduced
    if kind in ("fp8", "bf8"):
        table = values_of(target, kind)
        return lambda wave: table.take(wave.v[rows].view(np.uint8).take(index))
    if kind in ("i8", "iu8"):
        dtype: Any = np.int8 if signed else np.uint8
        return lambda wave: wave.v[rows].view(dtype).take(index).astype(np.float32)
    if kind == "iu4":
        bias = 8 if signed else 0  # (x ^ 8) - 8 extends the sign

        def nibbles(wave: Wave) -> Matrix:
            both = wave.v[rows].view(np.uint8)
            return ((np.stack((both & 15, both >> 4), -1).take(index) ^ bias).astype(np.float32)) - bias

        return nibbles
    return lambda wave: _pairs(wave.v[rows]).take(index)


def _pairs(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """(2 n, lanes) registers → (n, lanes) doubles."""
    wide = words[0::2] | words[1::2].astype(np.uint64) << np.uint64(32)
    return wide.view(np.float64)


def accumulator(operand: Operand, shape: Shape) -> Callable[[Wave], Any]:
    """Return a reader of C: a new (result registers, lanes), fp64 or int32, or one constant."""
    if operand.constant:
        value = constant(operand, shape.accumulator if shape.accumulator != "bf16" else "f32")
        return lambda wave: value
    if operand.file not in (File.VGPR, File.AGPR):
        raise Unmodelled(f"a matrix accumulator {operand}")
    row = row_of(operand)
    rows = slice(row, row + shape.result_registers)
    if shape.accumulator == "f32":
        return lambda wave: wave.singles[rows].astype(np.float64)
    if shape.accumulator == "i32":
        return lambda wave: wave.v[rows].view(np.int32)
    return lambda wave: _pairs(wave.v[rows])


def finish(operand: Operand, shape: Shape, flush: bool, clamp: bool) -> Callable[[Wave, Matrix, Any], None]:
    """Return a function that adds C to the product (result registers, lanes), rounds and writes D."""
    row = row_of(operand)
    rows = slice(row, row + shape.result_registers)
    if shape.accumulator == "f32":

        def add_floats(wave: Wave, product: Matrix, addend: Any) -> None:
            product += addend
            wave.singles[rows] = product

        def add_and_flush(wave: Wave, product: Matrix, addend: Any) -> None:
            product += addend * (np.abs(addend) >= _SMALLEST["f32"])
            result = wave.singles[rows]
            result[...] = product
            result *= np.abs(result) >= _SMALLEST["f32"]

        return add_and_flush if flush else add_floats
    if shape.accumulator == "f64":

        def add_doubles(wave: Wave, product: Matrix, addend: Any) -> None:
            words = (product + addend).view(np.uint64)
            wave.v[row : rows.stop : 2] = words.astype(np.uint32)
            wave.v[row + 1 : rows.stop : 2] = words >> np.uint64(32)

        return add_doubles

    def add_integers(wave: Wave, product: Matrix, addend: Any) -> None:
        wave.v[rows].view(np.int32)[...] = product.astype(np.int32) + addend

    def add_and_clamp(wave: Wave, product: Matrix, addend: Any) -> None:
        total = product.astype(np.int64) + addend
        wave.v[rows].view(np.int32)[...] = total.clip(-(1 << 31), (1 << 31) - 1)

    return add_and_clamp if clamp else add_integers
