"""The table of what is modelled: instruction name → a builder that binds one static instruction to a step.

A builder runs once per static instruction and does all the decoding it can; the step that it returns runs once per
wave and execution. A builder raises :class:`~kernelwright.simulator.errors.Unmodelled` for a mode it does not know.
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
    """How one instruction is built, and the class that counts it."""

    build: Builder
    kind: str


# Instructions that may go elsewhere than to the next, or that ask where they stand, by how their names start.
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
    """Register a builder for instructions; ``kind`` is the class they are counted in."""

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
    """Every modelled instruction, sorted."""
    return tuple(sorted(_TABLE))


def build(instruction: Instruction, target: Target) -> Step:
    """The step of one static instruction. Unmodelled if there are no semantics for it or for its mode."""
    entry = _TABLE.get(instruction.name)
    if entry is None:
        raise Unmodelled(f"{instruction.name} ({instruction.encoding}) has no semantics on {target.name}")
    return entry.build(instruction, target)


def ends_run(name: str) -> bool:
    """Whether execution may go on elsewhere than behind this instruction, or depends on where it stands."""
    return name.startswith(_ENDS)
