"""Functions of a code object as text: for LLVM's assembler, or with named operands."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.llvm_text import assembly, branch_target
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.tools.coverage import instructions_of

_COLUMN = 64


def functions(code: CodeObject, names: Collection[str]) -> Iterator[tuple[str, list[Instruction]]]:
    """Each of these functions with its instructions, in text order."""
    starts = {symbol.address - code.text_start: symbol.name for symbol in code.symbols if symbol.function}
    name, instructions = "", list[Instruction]()
    for instruction in instructions_of(code):
        if instruction.pc in starts:
            if name in names:
                yield name, instructions
            name, instructions = starts[instruction.pc], []
        instructions.append(instruction)
    if name in names:
        yield name, instructions


def listing(code: CodeObject, names: Collection[str]) -> Iterator[str]:
    """Lines that LLVM's assembler turns into the same bytes; a comment gives the byte offset of each in the text."""
    yield f"// {code.target.name}"
    for name, instructions in functions(code, names):
        reached = {goal for one in instructions if (goal := branch_target(one)) is not None}
        labels = {one.pc: f"L_{one.pc:x}" for one in instructions if one.pc in reached}
        yield f"{name}:"
        for one in instructions:
            if one.pc in labels:
                yield f"{labels[one.pc]}:"
            words = bytes(code.text[one.pc : one.pc + one.size])
            line = assembly(one, code.target, words, labels)
            yield (
                f"        {line:<{_COLUMN}} // {one.pc:#06x}"
                if "//" not in line
                else f"        {line} // {one.pc:#06x}"
            )


def fields(code: CodeObject, names: Collection[str]) -> Iterator[str]:
    """Lines with named operands, as faults and traces show them."""
    for name, instructions in functions(code, names):
        yield f"{name}: ({code.target.name})"
        yield from (f"{one.pc:#8x}  {one}" for one in instructions)
