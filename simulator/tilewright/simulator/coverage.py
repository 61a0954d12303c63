"""Static coverage: which instructions of a code object have no semantics, executed or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import tilewright.simulator.model  # noqa: F401  (fills the table of semantics)
from tilewright.simulator.decode import decode
from tilewright.simulator.errors import Unmodelled
from tilewright.simulator.instruction import Instruction
from tilewright.simulator.object_file import CodeObject, read_code_object
from tilewright.simulator.semantics import build


def instructions_of(code: CodeObject) -> Iterator[Instruction]:
    """Every static instruction of every function. Unmodelled for bytes that are no instruction."""
    for symbol in sorted(code.symbols, key=lambda one: one.address):
        if symbol.function:
            start = symbol.address - code.text_start
            yield from decode(code.text, code.target, start, start + symbol.nbytes)


def missing(code: CodeObject) -> Iterator[tuple[Instruction | None, str]]:
    """The instructions that have no semantics, or not in the mode they are in, and why; None for undecodable bytes."""
    known: dict[bytes, str] = {}
    try:
        for instruction in instructions_of(code):
            key = code.text[instruction.pc : instruction.pc + instruction.size]
            if key not in known:
                known[key] = _reason(instruction, code)
            if known[key]:
                yield instruction, known[key]
    except Unmodelled as error:
        yield None, error.reason


def coverage(image: bytes) -> Mapping[str, int]:
    """Name of each unmodelled instruction of the code object ``image`` → how many there are; empty if all is modelled.

    Bytes that are no instruction count as ``(not an instruction)``. ObjectError for a damaged image.
    """
    return Counter(
        instruction.name if instruction else "(not an instruction)"
        for instruction, _ in missing(read_code_object(image))
    )


def _reason(instruction: Instruction, code: CodeObject) -> str:
    try:
        build(instruction, code.target)
    except Unmodelled as error:
        return error.reason
    return ""
