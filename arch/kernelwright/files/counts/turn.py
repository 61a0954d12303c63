"""One iteration of a main loop: clocks for which each unit of a compute unit is busy, and the unit that bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.files.counts.instruction_set import InstructionSet
from kernelwright.files.counts.mix import Mix

UNITS = ("matrix", "vector", "lds", "memory")


def clocks(loop: Mix, known: InstructionSet, simds: int, conflicts: float = 0) -> dict[str, float] | None:
    """Return the clocks for which one iteration occupies each of :data:`UNITS`, in comparable terms.

    ``matrix`` and ``vector`` are clocks of a SIMD for one wave. ``lds``, including the clocks that bank ``conflicts``
    add, and ``memory`` (bytes over what the L2 delivers; left out where no source states that) are multiplied by the
    SIMDs that share them. None if the clocks of a matrix instruction are not known.
    """
    if loop.matrix_cycles is None:
        return None
    per_unit = {
        "matrix": loop.matrix_cycles,
        "vector": loop.vector_cycles,
        "lds": round((loop.lds_cycles + conflicts) * simds, 2),
    }
    if known.l2_bytes_per_clock:
        per_unit["memory"] = round(memory_bytes(loop, known.lanes) * simds / known.l2_bytes_per_clock)
    return per_unit


def memory_bytes(loop: Mix, lanes: int) -> int:
    """Return the bytes that one iteration of a wave loads and stores, with all lanes active."""
    widths = ((name.rpartition(" ")[2], count) for name, count in loop.memory.items())
    return sum(int(width) * count * lanes for width, count in widths if width.isdigit())


def bound(taken: Mapping[str, Any] | None) -> str | None:
    """Return the unit that is busy longest; ties go to the first of :data:`UNITS`."""
    return max((unit for unit in UNITS if unit in taken), key=lambda unit: taken[unit]) if taken else None
