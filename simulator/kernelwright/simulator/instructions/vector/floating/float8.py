"""Conversions between fp32 and the 8-bit floats of gfx942, gfx950 and gfx12."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions import float8
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import bind, vector
from kernelwright.simulator.instructions.vector.operands import Source, operand_at, plain, sources
from kernelwright.simulator.instructions.vector.results import destination, vgpr, write_row
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave

_WHOLE = 6  # SDWA selector
_REVERSED = (0, 2, 1, 3)  # gfx12 has the two bits that select a byte in opposite order


def _kind(instruction: Instruction) -> str:
    return "bf8" if "bf8" in instruction.name else "fp8"


def _word(instruction: Instruction, target: Target) -> Source:
    """The complete register, or the literal, that holds the source."""
    operand = operand_at(instruction, 0)
    if operand.file is File.INLINE:
        raise Unmodelled(f"{instruction.name} of an inline constant")
    for field in ("neg", "abs", "src0_neg", "src0_abs", "src0_sext"):
        if instruction.get(field):
            raise Unmodelled(f"{instruction.name}: {field}")
    return plain(replace(operand, high=False), target, "u32")


def _byte(instruction: Instruction, target: Target) -> int:
    if "SDWA" in instruction.encoding:
        selected = instruction.get("src0_sel", _WHOLE)
        if selected not in (0, 1, 2, 3, _WHOLE):
            raise Unmodelled(f"{instruction.name}: SDWA selector {selected}")
        return 0 if selected == _WHOLE else selected
    opsel = instruction.get("opsel")
    if opsel and target.tables != "rdna4":
        raise Unmodelled(f"{instruction.name}: opsel")
    return _REVERSED[opsel & 3]


@vector("v_cvt_f32_fp8", "v_cvt_f32_bf8")
def build_decode(instruction: Instruction, target: Target) -> Step:
    """Decode one byte of a register."""
    table, word, place = (
        float8.values(target, _kind(instruction)),
        _word(instruction, target),
        _byte(instruction, target),
    )
    return bind(lambda words: table[words.view(np.uint8)[place::4]], [word], destination(instruction, target, "f32"))


def _upper_word(instruction: Instruction, target: Target) -> bool:
    if "SDWA" in instruction.encoding:
        selected = instruction.get("src0_sel", _WHOLE)
        if selected not in (4, 5, _WHOLE):
            raise Unmodelled(f"{instruction.name}: SDWA selector {selected}")
        return selected == 5
    if target.tables == "rdna4":
        return operand_at(instruction, 0).high
    if instruction.get("opsel"):
        raise Unmodelled(f"{instruction.name}: opsel")
    return False


@vector("v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8")
def build_decode_pair(instruction: Instruction, target: Target) -> Step:
    """Decode two bytes of a register to two registers."""
    for field in ("clmp", "omod"):
        if instruction.get(field):
            raise Unmodelled(f"{instruction.name}: {field}")
    table, word = float8.values(target, _kind(instruction)), _word(instruction, target)
    first = 2 * _upper_word(instruction, target)
    row = row_of(vgpr(instruction.operands["vdst"]))
    low, high = write_row(row, "f32"), write_row(row + 1, "f32")

    def step(wave: Wave) -> None:
        bytes_ = word(wave).view(np.uint8)
        lower, upper = table[bytes_[first::4]], table[bytes_[first + 1 :: 4]]
        low(wave, lower)
        high(wave, upper)

    return step


@vector("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32")
def build_encode_pair(instruction: Instruction, target: Target) -> Step:
    """Encode two fp32 into one half of a register; the other half is kept."""
    if instruction.get("clmp") or instruction.get("omod"):
        raise Unmodelled(f"{instruction.name}: output modifiers")
    kind = _kind(instruction)
    float8.dtype(target, kind)
    first, second = sources(instruction, target, ("f32", "f32"))
    write = destination(instruction, target, "u16")

    def encode(wave: Wave, source: Source) -> Any:
        numbers = source(wave) if wave.full else np.where(wave.mask, source(wave), np.float32(0))
        return float8.encode(numbers, target, kind, wave.mode).astype(np.uint16)

    def step(wave: Wave) -> None:
        write(wave, encode(wave, first) | encode(wave, second) << np.uint16(8))

    return step
