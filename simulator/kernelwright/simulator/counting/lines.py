"""Decoded instructions as the lines that counting reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelwright.files.counts.line import Line
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.instructions.scalar.control import target_of_branch

_NARROW = (2, 3, 4)  # cbsz and blgp: fp6, bf6 and fp4


def line_of(instruction: Instruction) -> Line:
    """One instruction, without its branch target."""
    narrow = all(instruction.get(field) in _NARROW for field in ("cbsz", "blgp"))
    return Line(instruction.name, narrow=narrow, to_lds=bool(instruction.get("lds")))


def lines_of(function: Sequence[Instruction]) -> list[Line]:
    """The instructions of a function, in order."""
    index = {instruction.pc: at for at, instruction in enumerate(function)}
    lines = [line_of(instruction) for instruction in function]
    return [
        replace(line, goal=index.get(target_of_branch(instruction))) if line.branches else line
        for line, instruction in zip(lines, function, strict=True)
    ]
