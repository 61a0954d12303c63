"""Scalar destinations and the shapes of scalar steps: values are Python ints, unsigned."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.operands import scalar_pair, scalar_word
from kernelwright.simulator.machine.wave import Wave

Read = Callable[[Wave], int]
Write = Callable[[Wave, int], None]
_PLAIN = 124  # scalar operands below are registers without side effects

M32, M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


def signed32(value: int) -> int:
    """The 32 bits as a signed number."""
    return (value ^ 0x8000_0000) - 0x8000_0000


def signed64(value: int) -> int:
    """The 64 bits as a signed number."""
    return (value ^ 1 << 63) - (1 << 63)


def sign_extend(value: int, bits: int) -> int:
    """The low ``bits`` bits as a signed number."""
    return ((value & (1 << bits) - 1) ^ 1 << bits - 1) - (1 << bits - 1)


def source(instruction: Instruction, name: str, bits: int) -> Read:
    """Source ``name`` as 32 or 64 bits."""
    operand = instruction.operands[name]
    return scalar_pair(operand) if bits == 64 else scalar_word(operand)


def destination(instruction: Instruction, bits: int, name: str = "sdst") -> Write:
    """Return a writer of 32 or 64 bits; the value must fit."""
    operand = instruction.operands[name]
    index = operand.index
    if operand.file is not File.SGPR:
        raise ValueError(f"{instruction.name} writes {operand}")
    if bits == 64:
        return lambda wave, value: wave.write_scalar64(index, value)
    if index < _PLAIN:

        def write(wave: Wave, value: int) -> None:
            wave.s[index] = value

        return write
    return lambda wave, value: wave.write_scalar(index, value)


def silent(function: Callable[..., int], reads: list[Read], write: Write) -> Step:
    """A step that leaves SCC unchanged."""
    if len(reads) == 1:
        (only,) = reads
        return lambda wave: write(wave, function(only(wave)))
    first, second = reads
    return lambda wave: write(wave, function(first(wave), second(wave)))


def nonzero(function: Callable[..., int], reads: list[Read], write: Write) -> Step:
    """A step that sets SCC to whether the result is not 0."""

    def unary(wave: Wave) -> None:
        value = function(reads[0](wave))
        write(wave, value)
        wave.scc = 1 if value else 0

    def binary(wave: Wave) -> None:
        value = function(first(wave), second(wave))
        write(wave, value)
        wave.scc = 1 if value else 0

    if len(reads) == 1:
        return unary
    first, second = reads
    return binary


def carrying(function: Callable[[int, int, int], tuple[int, int]], reads: list[Read], write: Write) -> Step:
    """A step in which ``function`` of both sources and SCC gives the result and the new SCC."""
    first, second = reads

    def step(wave: Wave) -> None:
        value, wave.scc = function(first(wave), second(wave), wave.scc)
        write(wave, value)

    return step
