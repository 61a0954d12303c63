"""Facts about an AMD instruction set, one JSON file each: clocks of its instructions and phases of LDS.

A file names its sources. What no source states is marked ``assumed`` (phases) or left out (clocks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from kernelwright.files.strict_json import parse_json

Lanes = tuple[int, ...]
DWORD = 4
_NARROW_SHARE = 2  # fp4, fp6 and bf6 multiply at twice the rate of 8 bits


@dataclass(frozen=True)
class Phases:
    """Groups of lanes that LDS serves together, out of ``banks`` banks; ``assumed`` if no source states them."""

    groups: tuple[Lanes, ...]
    banks: int
    assumed: bool = False


@dataclass(frozen=True)
class InstructionSet:
    """Clocks and LDS phases of one instruction set.

    ``issue_clocks``: clocks for which a vector instruction of a wave occupies its SIMD; ``transcendental_clocks``: the
    same for a transcendental one. ``l2_bytes_per_clock``: bytes that the L2 delivers to a compute unit, None if no
    source states it. ``matrix``: clocks of a SIMD's matrix core by operands (``f16``) and shape (``32x32x8``). ``lds``:
    phases by ``read`` or ``write`` and bytes per lane (4, 8, 12, 16).
    """

    name: str
    lanes: int
    issue_clocks: int
    transcendental_clocks: int
    l2_bytes_per_clock: int | None
    matrix: Mapping[str, Mapping[str, int]]
    lds: Mapping[tuple[str, int], Phases]

    def matrix_clocks(self, name: str, narrow: bool = False) -> int | None:
        """Return the clocks of ``v_mfma_<result>_<shape>_<operands>`` or ``v_wmma_…``; None if no source states them.

        ``narrow``: both operands have four or six bits.
        """
        _, _, _, shape, operands = (*name.split("_", 4), "", "")[:5]
        clocks = self.matrix.get(operands, {}).get(shape)
        return clocks // _NARROW_SHARE if clocks and narrow else clocks

    def phases(self, way: str, nbytes: int) -> Phases:
        """Phases of accesses that ``read`` or ``write`` ``nbytes`` per lane; less than a dword counts as a dword."""
        return self.lds[way, max(DWORD, nbytes)]


@cache
def instruction_set(name: str) -> InstructionSet:
    """Return an instruction set by its name in ``amdgpu.instructions``; KeyError for a name not in :func:`names`."""
    if name not in names():
        raise KeyError(name)
    raw = parse_json((_folder() / f"{name}.json").read_bytes())
    lanes = raw["lanes"]
    lds = {_access(key): _phases(one, lanes) for key, one in raw["lds_phases"].items()}
    clocks = raw["issue_clocks"], raw["transcendental_clocks"], raw.get("l2_bytes_per_clock")
    return InstructionSet(name, lanes, *clocks, raw["matrix_clocks"], lds)


@cache
def names() -> frozenset[str]:
    """Return the names of the instruction sets that have a file."""
    return frozenset(file.name.removesuffix(".json") for file in _folder().iterdir() if file.name.endswith(".json"))


def _folder() -> Traversable:
    return files("kernelwright.files") / "instruction_sets"


def _access(key: str) -> tuple[str, int]:
    way, nbytes = key.split()
    return way, int(nbytes)


def _phases(raw: Mapping[str, Any], lanes: int) -> Phases:
    """Parse ``consecutive`` (neighbours per phase) or ``half`` (ranges of lanes below 32, which the others repeat)."""
    if "consecutive" in raw:
        size = raw["consecutive"]
        groups = tuple(tuple(range(first, first + size)) for first in range(0, lanes, size))
    else:
        lower = [tuple(_lanes(text)) for text in raw["half"]]
        groups = tuple(tuple(lane + first for lane in group) for first in (0, 32) for group in lower)
    return Phases(groups, raw["banks"], raw.get("assumed", False))


def _lanes(text: str) -> Iterator[int]:
    for part in text.split():
        low, high = part.split("-")
        yield from range(int(low), int(high) + 1)
