"""What a stretch of instructions holds: how many of each class and width, and the clocks that they issue for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.counting.lds_phases import phases
from kernelwright.simulator.counting.matrix_cycles import matrix_cycles
from kernelwright.simulator.instructions.memory.transfer import DS_LOADS, DS_STORES, LOADS, STORES
from kernelwright.simulator.instructions.semantics import find
from kernelwright.simulator.instructions.vector.floating.transcendental import NAMES as TRANSCENDENTAL

CDNA_ISSUE, CDNA_TRANSCENDENTAL = 4, 16
"""Clocks that one vector instruction of a wave of 64 lanes keeps its SIMD of 16 lanes (CDNA3 ISA guide, "VALU")."""
RDNA_ISSUE, RDNA_TRANSCENDENTAL = 1, 4
"""The same of 32 lanes (RDNA3 ISA guide); transcendental functions have a quarter of the lanes."""


@dataclass(frozen=True)
class Mix:
    """Counts of one wave. ``matrix_cycles`` are clocks of its SIMD's matrix core, None if no source states those of an
    instruction; ``vector_cycles`` clocks of its vector unit; ``lds_cycles`` clocks of the LDS that the SIMDs of a
    compute unit share, without bank conflicts.

    ``lds`` and ``memory`` have accesses by kind and bytes per lane: ``read 16``, ``load 16``, ``load to LDS 4``; or
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


def mix_of(executed: Iterable[tuple[Instruction, int]], target: Target) -> Mix:
    """The counts of instructions, each with how often it counts."""
    kinds: Counter[str] = Counter()
    lds: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    cycles: int | None = 0
    vector_cycles = 0
    for instruction, times in executed:
        kind = kind_of(instruction)
        kinds[kind] += times
        if kind == "matrix":
            one = matrix_cycles(instruction, target.instructions)
            cycles = None if one is None or cycles is None else cycles + one * times
        elif kind == "vector":
            vector_cycles += _issue(instruction, target) * times
        elif kind in ("lds", "global"):
            for name, count in accesses(instruction):
                (lds if kind == "lds" else memory)[name] += count * times
    return Mix(
        instructions=sum(kinds.values()),
        matrix=kinds["matrix"],
        matrix_cycles=cycles,
        vector=kinds["vector"],
        vector_cycles=vector_cycles,
        scalar=kinds["scalar"] + kinds["other"],
        lds_cycles=sum(_lds_clocks(name, target) * count for name, count in (lds + memory).items()),
        lds=dict(sorted(lds.items())),
        memory=dict(sorted(memory.items())),
        scratch=kinds["scratch"],
        waits=kinds["wait"],
        barriers=kinds["barrier"],
        branches=kinds["branch"],
    )


def kind_of(instruction: Instruction) -> str:
    """The class of an instruction, as reports of launches have it; ``other`` of one that is not modelled."""
    entry = find(instruction.name)
    return entry.kind if entry else "other"


def accesses(instruction: Instruction) -> tuple[tuple[str, int], ...]:
    """What a memory instruction does, and how often: ``(("read 16", 1),)``."""
    space, verb, what = (*instruction.name.split("_", 2), "")[:3]
    if "atomic" in instruction.name or (
        space == "ds" and verb not in ("read", "load", "write", "store") and not verb.startswith(("read2", "write2"))
    ):
        return ((verb if space == "ds" else "atomic", 1),)
    if space == "ds":
        return (_lds_access(verb, what),)
    if verb == "load":
        lds = instruction.get("lds") or what.startswith("lds_")
        return ((f"{'load to LDS' if lds else 'load'} {LOADS[what.removeprefix('lds_')].nbytes}", 1),)
    return ((f"store {STORES[what].nbytes}", 1),) if verb == "store" else ((verb, 1),)


def _lds_access(verb: str, what: str) -> tuple[str, int]:
    reads = verb.startswith(("read", "load"))
    pair = "2addr" in what or verb.startswith(("read2", "write2"))
    width = what.rsplit("_", 1)[-1]
    if pair:
        return f"{'read' if reads else 'write'} {4 if width == 'b32' else 8}", 2
    if "_tr_" in what:
        return "read transposed 8", 1
    table = DS_LOADS if reads else DS_STORES
    return f"{'read' if reads else 'write'} {table[what].nbytes}", 1


def _lds_clocks(access: str, target: Target) -> int:
    """Clocks of one access without conflicts; 0 of what has no width or goes past the LDS."""
    way, _, width = access.rpartition(" ")
    if not width.isdigit() or way in ("load", "store"):
        return 0
    return len(phases(target.instructions, "read" if way.startswith("read") else "write", int(width)).groups)


def _issue(instruction: Instruction, target: Target) -> int:
    transcendental = instruction.name in TRANSCENDENTAL
    if target.cdna:
        return CDNA_TRANSCENDENTAL if transcendental else CDNA_ISSUE
    return RDNA_TRANSCENDENTAL if transcendental else RDNA_ISSUE
