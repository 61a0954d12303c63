"""The modelled instructions of each architecture, by family of encodings."""

from __future__ import annotations

from dataclasses import dataclass

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.simulator.code.decode import known_names
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.instructions.semantics import find


@dataclass(frozen=True)
class Row:
    """One instruction: its family of encodings, the architectures that have it, and the class in which it is counted.

    ``kind`` is "" if the instruction is not modelled. Modes of a modelled instruction that are not modelled fault.
    """

    family: str
    name: str
    archs: tuple[str, ...]
    kind: str

    @property
    def modelled(self) -> bool:
        """Whether the instruction has semantics."""
        return bool(self.kind)


def rows() -> tuple[Row, ...]:
    """Every instruction of the simulated architectures, sorted by family and name.

    The decoder's tables are per family of chips (CDNA, RDNA 3, RDNA 4), so the three CDNA architectures look the same.
    """
    archs: dict[tuple[str, str], list[str]] = {}
    for target in TARGETS.values():
        for family, names in known_names(target).items():
            for name in names:
                archs.setdefault((family, name), []).append(target.name)
    return tuple(
        Row(family, name, tuple(where), entry.kind if (entry := find(name)) else "")
        for (family, name), where in sorted(archs.items())
    )


def summary() -> dict[str, dict[str, tuple[int, int]]]:
    """Family → architecture → (number of modelled instructions, number of all instructions)."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for row in rows():
        for arch in row.archs:
            modelled, known = counts.setdefault(row.family, {}).get(arch, (0, 0))
            counts[row.family][arch] = modelled + row.modelled, known + 1
    return counts
