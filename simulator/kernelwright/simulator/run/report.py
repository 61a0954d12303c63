"""The report of a launch: counts of executed instructions, never times."""

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
    """One kernel launch. ``workgroups`` and ``waves`` are totals of the grid.

    ``instructions`` counts each instruction once per wave that executed it; ``counts`` splits that number by the
    classes in :data:`CLASSES`. ``simulated`` is always true: no field says anything about speed.
    """

    kernel: str
    arch: str
    workgroups: int
    waves: int
    instructions: int
    counts: Mapping[str, int]
    simulated: bool = True


def counts_of(program: Program, ran: Iterable[Ran]) -> dict[str, int]:
    """Executed instructions by class, in the order of :data:`CLASSES`; 0 for classes that were not executed."""
    total: Counter[tuple[int, int]] = Counter()
    for part in ran:
        total.update(part)
    counts = dict.fromkeys(CLASSES, 0)
    kinds = [_kind(instruction.name) for instruction in program.instructions]
    for (start, stop), times in total.items():
        for kind, count in Counter(kinds[start:stop]).items():
            counts[kind] = counts.get(kind, 0) + count * times
    return counts


def _kind(name: str) -> str:
    entry = find(name)
    return entry.kind if entry else "other"
