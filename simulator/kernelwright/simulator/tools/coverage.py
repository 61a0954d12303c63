"""Static coverage: the instructions of a code object that are not modelled, whether they are executed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.simulator.code.decode import decode
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.object_file import CodeObject, read_code_object
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import build

UNDECODED = "(not an instruction)"


@dataclass
class Gap:
    """``count`` static instructions with the same name, unmodelled for the same reason; the first is at ``pc``."""

    name: str
    reason: str
    pc: int
    count: int = 0


def coverage(image: bytes) -> Mapping[str, int]:
    """Name of each unmodelled instruction in the code object ``image`` → number of static occurrences.

    Bytes that do not decode count as one :data:`UNDECODED`. Raises ObjectError for a damaged image.
    """
    counts: dict[str, int] = {}
    for gap in gaps(read_code_object(image)):
        counts[gap.name] = counts.get(gap.name, 0) + gap.count
    return counts


def gaps(code: CodeObject) -> list[Gap]:
    """The unmodelled instructions of a code object, most frequent first."""
    by_group: dict[tuple[str, str], Gap] = {}
    reasons: dict[bytes, str] = {}
    at = 0
    try:
        for instruction in instructions_of(code):
            at = instruction.pc + instruction.size
            key = code.text[instruction.pc : at]
            if key not in reasons:
                reasons[key] = _reason(instruction, code)
            if reasons[key]:
                group = instruction.name, reasons[key]
                by_group.setdefault(group, Gap(*group, instruction.pc)).count += 1
    except Unmodelled as error:
        by_group["", error.reason] = Gap(UNDECODED, error.reason, at, 1)
    return sorted(by_group.values(), key=lambda gap: -gap.count)


def instructions_of(code: CodeObject) -> Iterator[Instruction]:
    """Every static instruction of every function, by address. Raises Unmodelled for bytes that do not decode."""
    for symbol in sorted(code.symbols, key=lambda one: one.address):
        if symbol.function:
            start = symbol.address - code.text_start
            yield from decode(code.text, code.target, start, start + symbol.nbytes)


def _reason(instruction: Instruction, code: CodeObject) -> str:
    try:
        build(instruction, code.target)
    except Unmodelled as error:
        return error.reason
    return ""
