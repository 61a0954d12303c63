"""The table of modelled instructions: name → builder, which binds one static instruction to a step.

A builder runs once per static instruction and does all possible decoding; the step that it returns runs once per
execution and wave. A builder raises :class:`~kernelwright.simulator.errors.Unmodelled` for unmodelled modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave

Step = Callable[[Wave], None]
Builder = Callable[[Instruction, Target], Step]


@dataclass(frozen=True)
class Entry:
    """The builder of one instruction, and the class in which reports count it."""

    build: Builder
    kind: str


# Prefixes of instructions that may branch, wait or end, or whose result depends on their pc.
_ENDS = (
    "s_branch",
    "s_cbranch",
    "s_endpgm",
    "s_barrier",
    "s_setpc",
    "s_swappc",
    "s_call",
    "s_getpc",
    "s_trap",
    "s_rfe",
)

_TABLE: dict[str, Entry] = {}


def semantics(*names: str, kind: str) -> Callable[[Builder], Builder]:
    """Register a builder of instructions; ``kind`` is the class in which reports count them."""

    def register(build: Builder) -> Builder:
        for name in names:
            if name in _TABLE:
                raise ValueError(f"{name} has semantics already")
            _TABLE[name] = Entry(build, kind)
        return build

    return register


def find(name: str) -> Entry | None:
    """The entry of an instruction name, or None."""
    return _TABLE.get(name)


def names() -> tuple[str, ...]:
    """Names of all modelled instructions, sorted."""
    return tuple(sorted(_TABLE))


def build(instruction: Instruction, target: Target) -> Step:
    """The step of one static instruction. Unmodelled if it, or its mode, has no semantics."""
    entry = _TABLE.get(instruction.name)
    if entry is None:
        raise Unmodelled(f"{instruction.name} ({instruction.encoding}) has no semantics on {target.name}")
    return entry.build(instruction, target)


def ends_run(name: str) -> bool:
    """Whether the instruction may branch, wait or end, or depends on its own pc: it ends a straight-line run."""
    return name.startswith(_ENDS)
