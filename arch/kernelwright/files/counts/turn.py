"""A turn of a main loop: what each unit of a compute unit is busy for, and which one bounds the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.files.counts.instruction_set import InstructionSet
from kernelwright.files.counts.mix import Mix

UNITS = ("matrix", "vector", "lds", "memory")


def clocks(loop: Mix, known: InstructionSet, simds: int, conflicts: float = 0) -> dict[str, float] | None:
    """Clocks for which a turn occupies each of :data:`UNITS`, so that they compare.

    ``matrix`` and ``vector`` of a SIMD for one wave; ``lds``, with the clocks that bank ``conflicts`` add, and
    ``memory`` (bytes over what the L2 delivers; left out where no source states that) times the SIMDs that share them.
    None if the clocks of a matrix instruction are not known.
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
    """What a turn of a wave loads and stores, with all lanes active."""
    widths = ((name.rpartition(" ")[2], count) for name, count in loop.memory.items())
    return sum(int(width) * count * lanes for width, count in widths if width.isdigit())


def bound(taken: Mapping[str, Any] | None) -> str | None:
    """The unit that is busy longest; of equals, the first of :data:`UNITS`."""
    return max((unit for unit in UNITS if unit in taken), key=lambda unit: taken[unit]) if taken else None
