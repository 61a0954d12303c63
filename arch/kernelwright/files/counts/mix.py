"""Instruction mix of a stretch of code: counts by class and width, and the clocks that they issue for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelwright.files.counts.instruction_set import InstructionSet
from kernelwright.files.counts.line import Line, access_of, is_transcendental, kind_of


@dataclass(frozen=True)
class Mix:
    """Counts of one wave. ``matrix_cycles`` are clocks of its SIMD's matrix core, None if no source states the clocks
    of one of the instructions; ``vector_cycles`` are clocks of its vector unit; ``lds_cycles`` are clocks of the LDS
    that the SIMDs of a compute unit share, without bank conflicts.

    ``lds`` and ``memory`` count accesses by kind and bytes per lane: ``read 16``, ``load 16``, ``load to LDS 4``; or
    ``atomic``. A pair of addresses (``ds_read2``) counts as two accesses.
    """

    instructions: int = 0
    matrix: int = 0
    matrix_cycles: int | None = 0
    vector: int = 0
    vector_cycles: int = 0
    scalar: int = 0
    lds_cycles: int = 0
    lds: Mapping[str, int] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    scratch: int = 0
    waits: int = 0
    barriers: int = 0
    branches: int = 0


def mix_of(executed: Iterable[tuple[Line, int]], known: InstructionSet) -> Mix:
    """Return the counts of instructions, each given with the number of times it counts."""
    kinds: Counter[str] = Counter()
    accesses: dict[str, Counter[str]] = {"lds": Counter(), "global": Counter()}
    cycles: int | None = 0
    vector_cycles = 0
    for line, times in executed:
        kind = kind_of(line.name)
        kinds[kind] += times
        if kind == "matrix":
            one = known.matrix_clocks(line.name, line.narrow)
            cycles = None if one is None or cycles is None else cycles + one * times
        elif kind == "vector":
            slow = is_transcendental(line.name)
            vector_cycles += (known.transcendental_clocks if slow else known.issue_clocks) * times
        elif kind in accesses:
            name, count = access_of(line)
            accesses[kind][name] += count * times
    both = accesses["lds"] + accesses["global"]
    return Mix(
        instructions=sum(kinds.values()),
        matrix=kinds["matrix"],
        matrix_cycles=cycles,
        vector=kinds["vector"],
        vector_cycles=vector_cycles,
        scalar=kinds["scalar"] + kinds["other"],
        lds_cycles=sum(lds_clocks(name, known) * count for name, count in both.items()),
        lds=dict(sorted(accesses["lds"].items())),
        memory=dict(sorted(accesses["global"].items())),
        scratch=kinds["scratch"],
        waits=kinds["wait"],
        barriers=kinds["barrier"],
        branches=kinds["branch"],
    )


def lds_access(name: str) -> tuple[str, int] | None:
    """``read`` or ``write`` and the bytes per lane of an access as :class:`Mix` names it; None if it is not LDS."""
    way, _, width = name.rpartition(" ")
    if not width.isdigit() or way in ("load", "store"):
        return None
    return ("read" if way.startswith("read") else "write"), int(width)


def lds_clocks(name: str, known: InstructionSet) -> int:
    """Return the clocks of one access without conflicts; 0 for an access without a width or one that bypasses LDS."""
    access = lds_access(name)
    return len(known.phases(*access).groups) if access else 0
