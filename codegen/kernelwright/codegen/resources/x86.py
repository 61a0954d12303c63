"""Decodes x86-64 instructions: where they begin and end, and which are vector instructions.

capstone cannot be used instead: its newest release (5.0.9) does not know AVX512-BF16 (``vdpbf16ps``), AVX512-FP16 or
the VEX forms of VNNI, which are the multiply-adds that are counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_PREFIXES = frozenset(b"\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67\xf0")
_VECTOR = frozenset(b"\xc4\xc5\x62")
_PP = {0x66: 1, 0xF3: 2, 0xF2: 3}  # numbers of mandatory prefixes in VEX and EVEX


class DecodeError(ValueError):
    """Bytes that are not x86-64 code, or instructions that compilers do not emit."""


class Instruction(NamedTuple):
    """One instruction: ``encoding`` is legacy, vex or evex; ``map`` its opcode map (0: one byte, 1: 0F, 2: 0F38, …).

    ``pp`` is the mandatory prefix (0: none, 1: 66, 2: F3, 3: F2). ``registers`` are the numbers of the register
    operands in the fields reg, vvvv and, unless it is memory, rm, of vector instructions.
    """

    offset: int
    length: int
    encoding: str
    map: int
    pp: int
    opcode: int
    registers: tuple[int, ...] = ()


def decode(code: bytes) -> Iterator[Instruction]:
    """Yield the instructions of a function in order. DecodeError if the last one runs over the end.

    Lengths follow Intel's Software Developer's Manual, volume 2, chapter 2 (formats) and appendix A (opcode maps).
    """
    at = 0
    while at < len(code):
        try:
            instruction = _one(code, at)
        except IndexError:
            raise DecodeError(f"the instruction at {at} of {len(code)} bytes is cut off") from None
        at += instruction.length
        if at > len(code):
            raise DecodeError(f"the instruction at {instruction.offset} of {len(code)} bytes is cut off")
        yield instruction


def _one(code: bytes, start: int) -> Instruction:
    at = start
    byte = code[at]
    if byte in _VECTOR:
        return _vector(code, start, at)
    while byte in _PREFIXES:
        at += 1
        byte = code[at]
    seen = code[start:at]
    pp = next((number for prefix, number in _PP.items() if prefix in seen), 0) if seen else 0
    wide = False
    if 0x40 <= byte <= 0x4F:
        wide = bool(byte & 8)
        at += 1
        byte = code[at]
    number = 0
    if byte == 0x0F:
        at += 1
        number = {0x38: 2, 0x3A: 3}.get(code[at], 1)
        at += number > 1
        byte = code[at]
    at += 1
    size = _immediate(number, byte, 0x66 in seen, wide, 0x67 in seen)
    if _has_modrm(number, byte):
        if number == 0 and byte in (0xF6, 0xF7) and code[at] & 0x30 == 0:  # test: the only ones with an immediate
            size = 1 if byte == 0xF6 else _word(0x66 in seen)
        at += _operand_bytes(code, at)
    return Instruction(start, at + size - start, "legacy", number, pp, byte)


def _vector(code: bytes, start: int, at: int) -> Instruction:
    """Decode a vector instruction. Fields R, X, B, R', V' and vvvv are stored inverted."""
    first = code[at]
    if first == 0xC5:
        payload = code[at + 1]
        encoding, number, pp = "vex", 1, payload & 3
        high_r, high_x, high_b = (~payload >> 4) & 8, 0, 0
        vvvv = (~payload >> 3) & 15
        at += 2
    elif first == 0xC4:
        one, two = code[at + 1], code[at + 2]
        encoding, number, pp = "vex", one & 31, two & 3
        high_r, high_x, high_b = (~one >> 4) & 8, 0, (~one >> 2) & 8
        vvvv = (~two >> 3) & 15
        at += 3
    else:
        one, two, three = code[at + 1], code[at + 2], code[at + 3]
        encoding, number, pp = "evex", one & 7, two & 3
        high_r, high_x, high_b = ((~one >> 4) & 8) | (~one & 16), (~one >> 2) & 16, (~one >> 2) & 8
        vvvv = ((~two >> 3) & 15) | ((~three << 1) & 16)
        at += 4
    if number not in (1, 2, 3, 5, 6):
        raise DecodeError(f"the instruction at {start} is of opcode map {number}")
    opcode = code[at]
    at += 1
    if number == 1 and opcode == 0x77:  # vzeroupper
        return Instruction(start, at - start, encoding, number, pp, opcode)
    modrm = code[at]
    registers: tuple[int, ...] = ((modrm >> 3 & 7) | high_r, vvvv)
    if modrm >> 6 == 3:
        registers = (*registers, (modrm & 7) | high_b | high_x)
    at += _operand_bytes(code, at)
    at += number == 3 or (number == 1 and opcode in _IMMEDIATE_0F)
    return Instruction(start, at - start, encoding, number, pp, opcode, registers)


def _operand_bytes(code: bytes, at: int) -> int:
    """Return the bytes of ModRM, SIB and displacement."""
    modrm = code[at]
    mode, rm = modrm >> 6, modrm & 7
    if mode == 3:
        return 1
    sib = rm == 4
    if mode == 0:
        far = rm == 5 or (sib and code[at + 1] & 7 == 5)
        return 1 + sib + 4 * far
    return 1 + sib + (1 if mode == 1 else 4)


_MODRM_ONE_BYTE = frozenset(
    [
        *(op for op in range(0x40) if op & 7 < 4),
        *(0x63, 0x69, 0x6B, *range(0x80, 0x90), 0xC0, 0xC1, 0xC6, 0xC7),
        *(*range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xF6, 0xF7, 0xFE, 0xFF),
    ]
)
_NO_MODRM_0F = frozenset(
    [
        *(0x05, 0x06, 0x07, 0x08, 0x09, 0x0B, 0x0E, 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA),
        *(*range(0x30, 0x38), *range(0x80, 0x90), *range(0xC8, 0xD0)),
    ]
)
_IMMEDIATE_0F = frozenset([0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6])
_BYTE_ONE_BYTE = frozenset(
    [
        *(op for op in range(0x40) if op & 7 == 4),
        *(0x6A, 0x6B, *range(0x70, 0x81), 0x83, 0xA8, *range(0xB0, 0xB8), 0xC0, 0xC1, 0xC6, 0xCD),
        *(*range(0xE0, 0xE8), 0xEB),
    ]
)
_WORD_ONE_BYTE = frozenset([*(op for op in range(0x40) if op & 7 == 5), 0x68, 0x69, 0x81, 0xA9, 0xC7])


def _has_modrm(number: int, opcode: int) -> bool:
    if number == 0:
        return opcode in _MODRM_ONE_BYTE
    return number > 1 or opcode not in _NO_MODRM_0F


def _immediate(number: int, opcode: int, short: bool, wide: bool, small: bool) -> int:
    if number == 3:
        return 1
    if number == 2:
        return 0
    if number == 1:
        return 4 if 0x80 <= opcode <= 0x8F else int(opcode in _IMMEDIATE_0F)
    if opcode in _BYTE_ONE_BYTE:
        return 1
    if opcode in _WORD_ONE_BYTE:
        return _word(short)
    if 0xB8 <= opcode <= 0xBF:
        return 8 if wide else _word(short)
    if 0xA0 <= opcode <= 0xA3:
        return 4 if small else 8
    return {0xE8: 4, 0xE9: 4, 0xC2: 2, 0xCA: 2, 0xC8: 3}.get(opcode, 0)


def _word(short: bool) -> int:
    return 2 if short else 4
