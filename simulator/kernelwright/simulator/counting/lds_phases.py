"""LDS phases: which lanes of an access are served together, and the bank conflicts among them.

Lanes of a phase that need different dwords of one bank are served one after another; equal dwords are broadcast.
Sources: gfx942 and gfx950 reads of 128 bits: triton-lang/triton PR 11365 and 9662; gfx950's other rows: measured on an
MI355X by HazyResearch/HipKittens (f09e9685, analysis/paper_experiments/phases, all pairs of lanes); writes: CK Tile's
documentation, "Understanding AMD GPU LDS and Bank Conflicts". What no source states is marked as assumed: gfx90a as
gfx942, RDNA with phases of consecutive lanes, transposing reads as plain ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Lanes = tuple[int, ...]
_DWORD = 4


@dataclass(frozen=True)
class Phases:
    """Groups of lanes that are served together, out of ``banks`` banks; ``assumed`` if no source states them."""

    groups: tuple[Lanes, ...]
    banks: int
    assumed: bool = False


def _consecutive(lanes: int, size: int) -> tuple[Lanes, ...]:
    return tuple(tuple(range(first, first + size)) for first in range(0, lanes, size))


def _twice(*groups: Iterable[int]) -> tuple[Lanes, ...]:
    """Groups of the lower 32 lanes, and the same of the upper ones."""
    return tuple(tuple(lane + half for lane in group) for half in (0, 32) for group in groups)


_EIGHTS = _twice(
    (0, 1, 2, 3, 20, 21, 22, 23),
    (4, 5, 6, 7, 16, 17, 18, 19),
    (8, 9, 10, 11, 28, 29, 30, 31),
    (12, 13, 14, 15, 24, 25, 26, 27),
)
_SIXTEENS = _twice(
    (0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27),
    (4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31),
)
_CDNA3 = {
    ("read", 4): Phases(_consecutive(64, 32), 32),
    ("read", 8): Phases(_consecutive(64, 16), 32),
    ("read", 12): Phases(_EIGHTS, 32, assumed=True),
    ("read", 16): Phases(_EIGHTS, 32),
    ("write", 4): Phases(_consecutive(64, 32), 32),
    ("write", 8): Phases(_consecutive(64, 16), 32),
    ("write", 12): Phases(_consecutive(64, 8), 32, assumed=True),
    ("write", 16): Phases(_consecutive(64, 8), 32),
}
_CDNA4 = {
    ("read", 4): Phases(_consecutive(64, 64), 64),
    ("read", 8): Phases(_consecutive(64, 32), 64),
    ("read", 12): Phases(_EIGHTS, 32),
    ("read", 16): Phases(_SIXTEENS, 64),
    ("write", 4): Phases(_consecutive(64, 32), 32, assumed=True),
    ("write", 8): Phases(_consecutive(64, 16), 32),
    ("write", 12): Phases(_consecutive(64, 8), 32, assumed=True),
    ("write", 16): Phases(_consecutive(64, 8), 32, assumed=True),
}
_RDNA = {
    (way, nbytes): Phases(_consecutive(32, size), 32, assumed=True)
    for way in ("read", "write")
    for nbytes, size in ((4, 32), (8, 16), (12, 8), (16, 8))
}


@cache
def phases(instructions: str, way: str, nbytes: int) -> Phases:
    """Phases of accesses that ``read`` or ``write`` ``nbytes`` per lane, on an instruction set such as ``gfx942``."""
    key = way, max(_DWORD, nbytes)
    if instructions == "gfx950":
        return _CDNA4[key]
    if instructions in ("gfx90a", "gfx942"):
        found = _CDNA3[key]
        return found if instructions == "gfx942" else Phases(found.groups, found.banks, assumed=True)
    return _RDNA[key]


def conflicts(addresses: NDArray[np.int64], lanes: NDArray[np.int64], nbytes: int, served: Phases) -> tuple[int, int]:
    """Clocks that one access takes, and those of them that conflicts add.

    ``addresses`` are bytes, of the active ``lanes``, each with ``nbytes`` from there on.
    """
    last = (addresses + max(_DWORD, nbytes) - 1) // _DWORD
    first = addresses // _DWORD
    clocks = taken = 0
    for group in served.groups:
        active = np.isin(lanes, group)
        if not active.any():
            continue
        dwords = np.unique(np.concatenate([first[active] + i for i in range(int((last - first).max()) + 1)]))
        clocks += int(np.bincount(dwords % served.banks).max())
        taken += 1
    return clocks, clocks - taken
