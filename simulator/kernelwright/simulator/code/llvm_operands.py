"""Operands as LLVM's assembler reads them."""

from __future__ import annotations

import struct

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target

# Scalar operands that are not SGPRs, for one register and for two.
_ON_CDNA = {102: ("flat_scratch", 2), 104: ("xnack_mask", 2), 106: ("vcc", 2), 124: ("m0", 1), 126: ("exec", 2)}
_ON_RDNA = {106: ("vcc", 2), 124: ("null", 1), 125: ("m0", 1), 126: ("exec", 2)}
_TTMP = range(108, 124)
# Values with their own encoding: integers, and fp32 numbers.
_FLOATS = (0.5, 1.0, 2.0, 4.0, 0.15915494309189532)
_INLINE = {value & 0xFFFFFFFF for value in range(-16, 65)} | {
    int(struct.unpack("<I", struct.pack("<f", sign * value))[0]) for value in _FLOATS for sign in (1, -1)
}


class NoText(Exception):
    """LLVM's spelling of an instruction is unknown here."""


def registers(letter: str, first: int, count: int) -> str:
    """``v5``, ``v[5:8]``."""
    return f"{letter}{first}" if count == 1 else f"{letter}[{first}:{first + count - 1}]"


def scalar(index: int, count: int, target: Target) -> str:
    """The name of a scalar register or a pair."""
    names = _ON_CDNA if target.cdna else _ON_RDNA
    if index in names:
        name, size = names[index]
        if size == count or size == 1:
            return name
        if count == 1:
            return f"{name}_lo"
    if count == 1 and index - 1 in names and names[index - 1][1] == 2:
        return f"{names[index - 1][0]}_hi"
    if index in _TTMP:
        return registers("ttmp", index - _TTMP.start, count)
    if index + count > 106 or (target.cdna and index + count > 102):
        raise NoText(f"scalar operand {index}")
    return registers("s", index, count)


def text(operand: Operand, target: Target) -> str:
    """An operand without modifiers."""
    if operand.file is File.INLINE:
        return str(operand.value)
    if operand.file is File.LITERAL:
        if operand.word() in _INLINE:
            raise NoText("a literal that the assembler would shorten")
        return f"{operand.word():#x}"
    if operand.file is File.SGPR:
        return scalar(operand.index, operand.count, target)
    if operand.file in (File.VGPR, File.AGPR) and not operand.high:
        return registers(operand.file.value, operand.index, operand.count)
    raise NoText(str(operand))


def used(instruction: Instruction, *keys: str) -> list[str]:
    """The operands among ``keys`` that the instruction has; encodings have room for more, of unknown format."""
    operands = instruction.operands
    return [key for key in keys if key in operands and not (key == "src2" and operands[key].form == "ANY")]


def signed(value: int, bits: int) -> int:
    """A field as a signed number."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def flags(instruction: Instruction, *names: str) -> list[str]:
    """Names of one-bit fields that are set, such as ``sc0``, ``nt``, ``offen``."""
    return [name for name in names if instruction.get(name)]
