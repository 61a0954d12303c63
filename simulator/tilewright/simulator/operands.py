"""How steps read and write operands: bound once per static instruction, then called once per wave and execution.

A *kind* says how the bits are seen: ``u32 i32 f32`` (one register), ``u64 i64 f64`` (a pair), ``u16 i16 f16`` (a half).
A source is a function of the wave that returns an array of one value per lane, or a NumPy scalar if all lanes share it.
Arrays that a source returns may be the registers themselves: never write to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.simulator.errors import Unmodelled
from tilewright.simulator.instruction import File, Instruction, Operand
from tilewright.simulator.wave import VGPRS, Wave

Source = Callable[[Wave], Any]
Destination = Callable[[Wave, Any], None]

DTYPES: dict[str, Any] = {
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
}


def row_of(operand: Operand) -> int:
    """Row of the wave's register array of a vector operand."""
    return operand.index + (VGPRS if operand.file is File.AGPR else 0)


def constant(operand: Operand, kind: str) -> Any:
    """A constant operand as an instruction of this kind sees it.

    Inline floats take the operand's own width; inline integers are sign-extended; a literal is 32 bits, zero-extended
    for 64-bit integers and the high half for fp64 (RDNA3 ISA guide, "Scalar ALU operands").
    """
    value, dtype = operand.value, DTYPES[kind]
    bits = np.dtype(dtype).itemsize * 8
    if isinstance(value, float):
        as_float: Any = {16: np.float16, 32: np.float32, 64: np.float64}[bits](value)
        return as_float.view(dtype)
    if operand.file is File.LITERAL and kind == "f64":
        value <<= 32
    return np.array(value & ((1 << bits) - 1), f"u{bits // 8}").view(dtype)[()]


def scalar_word(operand: Operand) -> Callable[[Wave], int]:
    """A 32-bit scalar operand as a Python int below 2**32."""
    index = operand.index
    if operand.constant:
        word = operand.word()
        return lambda wave: word
    if operand.file is File.SGPR:
        if index < 124:
            return lambda wave: wave.s[index]
        return lambda wave: wave.read_scalar(index)
    if operand.file is File.SCC:
        return lambda wave: wave.scc
    if operand.file is File.EXECZ:
        return lambda wave: int(wave.exec == 0)
    if operand.file is File.VCCZ:
        return lambda wave: int(wave.read_mask(106) == 0)
    raise Unmodelled(f"{operand.file.name} {operand.index} as a scalar operand")


def scalar_pair(operand: Operand) -> Callable[[Wave], int]:
    """A 64-bit scalar operand as a Python int below 2**64."""
    index = operand.index
    if operand.constant:
        word = int(constant(operand, "u64"))
        return lambda wave: word
    if operand.file is File.SGPR:
        return lambda wave: wave.read_scalar64(index)
    raise Unmodelled(f"{operand.file.name} {operand.index} as a 64-bit scalar operand")


def vector_source(instruction: Instruction, name: str, kind: str) -> Source:
    """Source ``name`` (``src0``, ``vsrc1``, …) of a vector instruction."""
    source = plain_source(instruction.operands[name], kind)
    return _modified(source, instruction, name, kind)


def plain_source(operand: Operand, kind: str) -> Source:
    """An operand without the modifiers of its instruction."""
    if operand.constant:
        value = constant(operand, kind)
        return lambda wave: value
    if operand.file in (File.VGPR, File.AGPR):
        return _registers(row_of(operand), kind, operand.high)
    return _broadcast(operand, kind)


def _registers(row: int, kind: str, high: bool) -> Source:
    if kind == "u32":
        return lambda wave: wave.u[row]
    if kind == "i32":
        return lambda wave: wave.i[row]
    if kind == "f32":
        return lambda wave: wave.f[row]
    dtype = DTYPES[kind]
    if np.dtype(dtype).itemsize == 2:
        half = int(high)
        return lambda wave: wave.u[row].view(dtype)[half::2]
    return lambda wave: (wave.u[row] | wave.u[row + 1].astype(np.uint64) << np.uint64(32)).view(dtype)


def _broadcast(operand: Operand, kind: str) -> Source:
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    if size == 8:
        pair = scalar_pair(operand)
        return lambda wave: np.uint64(pair(wave)).view(dtype)
    word = scalar_word(operand)
    if size == 4:
        return lambda wave: np.uint32(word(wave)).view(dtype)
    shift = 16 if operand.high else 0
    return lambda wave: np.uint16(word(wave) >> shift & 0xFFFF).view(dtype)


def _modified(source: Source, instruction: Instruction, name: str, kind: str) -> Source:
    position = int(name[-1])
    negate = instruction.get("neg") >> position & 1
    absolute = instruction.get("abs") >> position & 1
    if not negate and not absolute:
        return source
    if kind not in ("f16", "f32", "f64"):
        raise Unmodelled(f"{instruction.name}: neg or abs of an operand that is no float")
    if absolute and negate:
        return lambda wave: -np.abs(source(wave))
    if absolute:
        return lambda wave: np.abs(source(wave))
    return lambda wave: -source(wave)


def vector_destination(instruction: Instruction, kind: str, name: str = "vdst") -> Destination:
    """Writes the active lanes of a vector destination."""
    if instruction.get("omod") or instruction.get("clmp"):
        raise Unmodelled(f"{instruction.name}: output modifier or clamp")
    row = row_of(instruction.operands[name])
    if kind in ("u32", "i32", "f32"):
        return _write_row(row, kind)
    if kind in ("u64", "i64", "f64"):
        low, high = _write_row(row, "u32"), _write_row(row + 1, "u32")

        def write_pair(wave: Wave, value: Any) -> None:
            bits = np.asarray(value).view(np.uint64)
            low(wave, bits.astype(np.uint32))
            high(wave, (bits >> np.uint64(32)).astype(np.uint32))

        return write_pair
    raise Unmodelled(f"{instruction.name}: a 16-bit destination")


def _write_row(row: int, kind: str) -> Destination:
    view = {"u32": "u", "i32": "i", "f32": "f"}[kind]

    def write(wave: Wave, value: Any) -> None:
        registers = getattr(wave, view)[row]
        if wave.full:
            registers[...] = value
        else:
            np.copyto(registers, value, where=wave.mask)

    return write
