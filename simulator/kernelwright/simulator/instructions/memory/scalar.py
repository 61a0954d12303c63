"""Scalar loads (SMEM): from one address of the wave to consecutive SGPRs."""

from __future__ import annotations

import struct
from collections.abc import Callable

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import scalar_word
from kernelwright.simulator.machine.wave import Wave

_DWORDS = {"b32": 1, "b64": 2, "b96": 3, "b128": 4, "b256": 8, "b512": 16}
_DWORDS |= {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
_SMALL = {"u8": "B", "i8": "b", "u16": "H", "i16": "h"}
_MASK = (1 << 64) - 1


@semantics(*(f"s_load_{width}" for width in _DWORDS), kind="scalar")
def load(instruction: Instruction, target: Target) -> Step:
    """Load from base + offset + soffset; the two low bits are ignored (ISA guides, "Scalar memory")."""
    dwords = _DWORDS[instruction.name.removeprefix("s_load_")]
    base, offset, register = address_parts(instruction, target)
    first = instruction.operands["sdata"].index
    last = first + dwords

    def step(wave: Wave) -> None:
        address = wave.read_scalar64(base) + offset
        if register is not None:
            address += register(wave)
        wave.s[first:last] = wave.memory.load_scalar(wave, address & _MASK & ~3, dwords)

    return step


@semantics(*(f"s_load_{width}" for width in _SMALL), kind="scalar")
def load_small(instruction: Instruction, target: Target) -> Step:
    """Load bytes and shorts (gfx12), extended to 32 bits."""
    layout = "<" + _SMALL[instruction.name.removeprefix("s_load_")]
    nbytes = struct.calcsize(layout)
    base, offset, register = address_parts(instruction, target)
    first = instruction.operands["sdata"].index

    def step(wave: Wave) -> None:
        address = (wave.read_scalar64(base) + offset + (register(wave) if register else 0)) & _MASK
        word, at = wave.memory.load_scalar(wave, address & ~3, 1)[0], address & 3 & -nbytes
        (value,) = struct.unpack_from(layout, word.to_bytes(4, "little"), at)
        wave.s[first] = value & 0xFFFFFFFF

    return step


@semantics(*(f"s_buffer_load_{width}" for width in _DWORDS), kind="scalar")
def load_from_buffer(instruction: Instruction, target: Target) -> Step:
    """Load through a descriptor (V#): dwords out of range give 0 (ISA guides, "Scalar buffer load")."""
    dwords = _DWORDS[instruction.name.removeprefix("s_buffer_load_")]
    resource, offset, register = address_parts(instruction, target)
    first = instruction.operands["sdata"].index

    def step(wave: Wave) -> None:
        low, high, records, _ = wave.s[resource : resource + 4]
        size = records * (high >> 16 & 0x3FFF or 1)
        at = offset + (register(wave) if register else 0) & ~3
        inside = max(0, min(dwords, (size - at) // 4))
        if at < 0 or (inside < dwords and size % 4):
            raise Unmodelled(f"a scalar buffer load at offset {at} of {size} bytes")
        base = (low | (high & 0xFFFF) << 32) & ~3
        words = wave.memory.load_scalar(wave, base + at, inside) if inside else []
        wave.s[first : first + dwords] = words + [0] * (dwords - inside)

    return step


def address_parts(instruction: Instruction, target: Target) -> tuple[int, int, Callable[[Wave], int] | None]:
    """Register of the base, constant offset, and the source of a further offset or None.

    gfx9 has flags: ``imm`` (the offset field is a signed number, else the number of an SGPR) and ``soffset_en``. Later
    families always have a number, and use null for no register.
    """
    base = instruction.operands["sbase"].index
    width = 24 if "ioffset" in instruction.fields else 21
    raw = instruction.get("ioffset", instruction.get("offset"))
    offset = raw - (1 << width) if raw >> (width - 1) else raw
    soffset = instruction.operands["soffset"]
    if not target.cdna:
        return base, offset, None if soffset.index == target.null else scalar_word(soffset)
    if instruction.get("imm"):
        return base, offset, scalar_word(soffset) if instruction.get("soffset_en") else None
    if instruction.get("soffset_en"):
        raise Unmodelled(f"{instruction.name}: soffset_en without imm")
    return base, 0, scalar_word(Operand(File.SGPR, raw & 127))
