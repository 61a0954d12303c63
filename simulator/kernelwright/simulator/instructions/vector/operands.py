"""Operands of vector instructions: arrays with one value per lane, with the modifiers of every encoding applied.

A *kind* says how bits are interpreted: ``u32 i32 f32`` (a register), ``u64 i64 f64`` (a pair), ``u16 i16 f16`` (a
half), ``u24 i24`` (the low 24 bits of a register), ``u3 u4 i4 u5 i5 u6`` (shift counts: the low bits, in the type to
shift). Arrays returned by a source may be the registers themselves, and are overwritten when the step runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.vector.sdwa import select
from kernelwright.simulator.machine.operands import DTYPES, constant, row_of, scalar_pair, scalar_word
from kernelwright.simulator.machine.wave import Wave

Source = Callable[[Wave], Any]

# kind → (kind that is read, conversion from it)
_DERIVED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "u3": ("u32", lambda a: (a & np.uint32(7)).astype(np.uint64)),
    "u4": ("u16", lambda a: a & np.uint16(15)),
    "i4": ("i16", lambda a: a & np.int16(15)),
    "u5": ("u32", lambda a: a & np.uint32(31)),
    "i5": ("i32", lambda a: a & np.int32(31)),
    "u6": ("u32", lambda a: (a & np.uint32(63)).astype(np.uint64)),
    "u24": ("u32", lambda a: a & np.uint32(0xFFFFFF)),
    "i24": ("i32", lambda a: a << np.int32(8) >> np.int32(8)),
}
_FLOATS = ("f16", "f32", "f64")


def operand_at(instruction: Instruction, position: int) -> Operand:
    """Source operand number ``position``, whatever its name in the encoding."""
    if instruction.encoding.endswith(("SDWA", "SDWA_SDST")):
        name = f"vsrc{position}"
        operand = instruction.operands[name]
        if not instruction.get(f"s{position}"):
            return operand
        if operand.index >= 128:
            raise Unmodelled(f"{instruction.name}: a constant as an SDWA operand")
        return Operand(File.SGPR, operand.index, operand.count, operand.form, operand.bits)
    for name in (f"src{position}", f"vsrc{position}"):
        if name in instruction.operands:
            return instruction.operands[name]
    raise Unmodelled(f"{instruction.name} ({instruction.encoding}) has no source operand {position}")


def sources(instruction: Instruction, target: Target, kinds: tuple[str, ...]) -> list[Source]:
    """The first ``len(kinds)`` source operands."""
    return [vector_source(instruction, target, position, kind) for position, kind in enumerate(kinds)]


def vector_source(instruction: Instruction, target: Target, position: int, kind: str) -> Source:
    """One source operand: an array (lanes,) of the kind's type. Unmodelled for an unsuitable modifier."""
    base, derive = _DERIVED.get(kind, (kind, None))
    operand = operand_at(instruction, position)
    negate, absolute = modifiers(instruction, position)
    if (negate or absolute) and base not in _FLOATS:
        raise Unmodelled(f"{instruction.name}: neg or abs of an operand that is no float")
    source = _selected(instruction, target, operand, position, base)
    source = _signed(source, operand, negate, absolute)
    if derive is None:
        return source
    if operand.constant:
        value = derive(source(None))  # type: ignore[arg-type]
        return lambda wave: value
    return lambda wave: derive(source(wave))


def modifiers(instruction: Instruction, position: int) -> tuple[bool, bool]:
    """(negate, absolute) of a source."""
    if f"src{position}_neg" in instruction.fields:
        beside = instruction.get("neg") | instruction.get("abs")  # VOP3 with DPP has both sets; only one is used
        if beside and (instruction.get(f"src{position}_neg") or instruction.get(f"src{position}_abs")):
            raise Unmodelled(f"{instruction.name}: two sets of input modifiers")
        if not beside:
            return bool(instruction.get(f"src{position}_neg")), bool(instruction.get(f"src{position}_abs"))
    return bool(instruction.get("neg") >> position & 1), bool(instruction.get("abs") >> position & 1)


def plain(operand: Operand, target: Target, kind: str) -> Source:
    """An operand without modifiers, as an array (lanes,)."""
    if operand.constant:
        if operand.high:
            raise Unmodelled("the high half of a constant")
        value = np.full(target.lanes, constant(operand, kind))
        return lambda wave: value
    if operand.file in (File.VGPR, File.AGPR):
        return registers(row_of(operand), kind, target.lanes, high=operand.high)
    return _broadcast(operand, target, kind)


def registers(row: int, kind: str, lanes: int, *, high: bool = False) -> Source:
    """Rows of the register file."""
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
    return _pair(row, dtype, lanes)


def _pair(row: int, dtype: Any, lanes: int) -> Source:
    words = np.empty((lanes, 2), np.uint32)
    low, high, view = words[:, 0], words[:, 1], words.reshape(-1).view(dtype)

    def source(wave: Wave) -> Any:
        low[...] = wave.u[row]
        high[...] = wave.u[row + 1]
        return view

    return source


def _broadcast(operand: Operand, target: Target, kind: str) -> Source:
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    lanes = np.empty(target.lanes, f"u{size}")
    view = lanes.view(dtype)
    read = scalar_pair(operand) if size == 8 else scalar_word(operand)
    shift = 16 if operand.high else 0

    def whole(wave: Wave) -> Any:
        lanes.fill(read(wave))
        return view

    def half(wave: Wave) -> Any:
        lanes.fill(read(wave) >> shift & 0xFFFF)
        return view

    return half if size == 2 else whole


def _selected(instruction: Instruction, target: Target, operand: Operand, position: int, kind: str) -> Source:
    """The source after SDWA's choice of bytes."""
    if "SDWA" not in instruction.encoding:
        return plain(operand, target, kind)
    dtype = DTYPES[kind]
    size = np.dtype(dtype).itemsize
    if size == 8:
        raise Unmodelled(f"{instruction.name}: SDWA on 64 bits")
    choose = select(instruction.get(f"src{position}_sel"), bool(instruction.get(f"src{position}_sext")))
    if choose is None and size == 4:
        return plain(operand, target, kind)
    word = plain(operand, target, "u32")
    if choose is not None:
        chosen = choose
        if size == 4:
            return lambda wave: chosen(word(wave)).view(dtype)
        return lambda wave: chosen(word(wave)).view(dtype)[::2]
    return lambda wave: word(wave).view(dtype)[::2]


def _signed(source: Source, operand: Operand, negate: bool, absolute: bool) -> Source:
    if not negate and not absolute:
        return source

    def apply(value: Any) -> Any:
        value = np.abs(value) if absolute else value
        return np.negative(value) if negate else value

    if operand.constant:
        value = apply(source(None))  # type: ignore[arg-type]
        return lambda wave: value
    return lambda wave: apply(source(wave))
