"""Fused products of fp32 and fp16 operands: v_fma_mix and its forms with an fp16 result.

``opsel_hi`` says which sources are fp16, ``opsel`` in which half; ``neg_hi`` takes the absolute value. The tables call
CDNA's instructions v_mad_mix; gfx90a, gfx942 and gfx950 all have the fused ones at these opcodes (LLVM,
FeatureFmaMixInsts).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.floating.arithmetic import FUSED, in_mode
from kernelwright.simulator.instructions.vector.floating.convert import convert
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.operands import Source, operand_at, plain
from kernelwright.simulator.instructions.vector.packed.halves import selection
from kernelwright.simulator.instructions.vector.results import clamp_unit, vgpr, write_half, write_row
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave

_USUAL = modes.SINGLE.plain | modes.OTHER.plain
_MASK = modes.SINGLE.mask | modes.OTHER.mask


def _source(instruction: Instruction, target: Target, position: int) -> Source:
    operand = operand_at(instruction, position)
    half, is_half = selection(instruction, position)
    negate, absolute = (bool(instruction.get(name) >> position & 1) for name in ("neg", "neg_hi"))
    if is_half and operand.constant:
        raise Unmodelled(f"{instruction.name}: a constant as an fp16 operand")
    if not is_half:
        return _signed(plain(operand, target, "f32"), negate, absolute)
    word = plain(operand, target, "u32")

    def read(wave: Wave) -> Any:
        value = word(wave).view(np.float16)[half::2]
        if wave.mode & modes.OTHER.plain == modes.OTHER.plain:
            return value.astype(np.float32)
        return convert(value, "f16", "f32", wave.mode)

    return _signed(read, negate, absolute)


def _signed(source: Source, negate: bool, absolute: bool) -> Source:
    if not negate and not absolute:
        return source
    if not absolute:
        return lambda wave: -source(wave)
    return (lambda wave: -np.abs(source(wave))) if negate else (lambda wave: np.abs(source(wave)))


@vector(*(f"v_{verb}_mix{form}" for verb in ("fma", "mad") for form in ("_f32", "lo_f16", "hi_f16")))
def build_mix(instruction: Instruction, target: Target) -> Step:
    """The result in fp32, or rounded once more to one fp16 half of the register."""
    inputs = [_source(instruction, target, position) for position in range(3)]
    row, clamp = row_of(vgpr(instruction.operands["vdst"])), bool(instruction.get("clmp"))
    single = instruction.name.endswith("_f32")
    write = write_row(row, "f32") if single else write_half(row, int("hi_" in instruction.name))

    def step(wave: Wave) -> None:
        values = [source(wave) for source in inputs]
        usual = wave.mode & _MASK == _USUAL
        result = FUSED.usual["f32"](*values) if usual else in_mode(FUSED, "f32", wave.mode, values)
        if not single:
            result = result.astype(np.float16) if usual else convert(result, "f32", "f16", wave.mode)
        write(wave, clamp_unit(result, wave) if clamp else result)

    return step
