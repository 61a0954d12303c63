"""Starts commands of a plan with intact inputs, as soon as there is memory for them.

Each command starts in a shell that verifies its inputs (see ``damaged_store``) and then waits for a memory slot, by the
generator's script ``building/slots.sh``, which its local executor runs too. Pants itself does not track memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

from kernelwright.pants import damaged_store
from kernelwright.pants.generator_data import generator_data


@dataclass(frozen=True)
class Slot:
    """What a Process needs to wait for its memory: its argv, its slot variable, and a named cache."""

    argv: tuple[str, ...]
    variable: str
    caches: Mapping[str, str]


def waiting(argv: tuple[str, ...], memory_mb: int) -> Slot:
    """Return ``argv`` wrapped to start as soon as ``memory_mb`` megabytes are free."""
    script = damaged_store.COMPARE_CHECKSUMS + generator_data()["slots"]
    return Slot(
        argv=("/bin/sh", "-c", script, "slots", "run", *argv),
        variable=f"KERNELWRIGHT_MEMORY_MB_{memory_mb}",
        caches={"kernelwright_memory": "__memory"},
    )
