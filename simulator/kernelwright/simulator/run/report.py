"""What a launch says about itself: counts of executed instructions, and no times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelwright.simulator.instructions.semantics import find
from kernelwright.simulator.run.program import Program

CLASSES = ("scalar", "vector", "matrix", "lds", "global", "scratch", "barrier", "branch", "wait", "other")
Ran = Mapping[tuple[int, int], int]  # (start, stop) of a run of steps → how often it was executed


@dataclass(frozen=True)
class LaunchReport:
    """``instructions`` counts every instruction once per wave that executed it; ``counts`` are those by class."""

    kernel: str
    arch: str
    workgroups: int
    waves: int
    instructions: int
    counts: Mapping[str, int]
    simulated: bool = True


def counts_of(program: Program, ran: Iterable[Ran]) -> dict[str, int]:
    """Executed instructions by class, in the order of :data:`CLASSES`; absent classes are 0."""
    total: Counter[tuple[int, int]] = Counter()
    for part in ran:
        total.update(part)
    found = dict.fromkeys(CLASSES, 0)
    kinds = [_kind(instruction.name) for instruction in program.instructions]
    for (start, stop), times in total.items():
        for kind, count in Counter(kinds[start:stop]).items():
            found[kind] = found.get(kind, 0) + count * times
    return found


def _kind(name: str) -> str:
    entry = find(name)
    return entry.kind if entry else "other"
