"""Bank conflicts of LDS: lanes of a phase that need different dwords of one bank are served one after another.

Equal dwords are broadcast. rocprof counts the clocks that conflicts add as ``SQ_LDS_BANK_CONFLICT``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kernelwright.files.counts.instruction_set import DWORD, Phases


def conflicts(addresses: Sequence[int], lanes: Sequence[int], nbytes: int, served: Phases) -> tuple[int, int]:
    """Return the clocks that one access takes, and how many of them conflicts add.

    ``addresses`` are the byte addresses of the active ``lanes``; each lane accesses ``nbytes`` from there on.
    """
    where = dict(zip(lanes, addresses, strict=True))
    size = max(DWORD, nbytes)
    clocks = taken = 0
    for group in served.groups:
        dwords = {
            dword
            for lane in group
            if lane in where
            for dword in range(where[lane] // DWORD, (where[lane] + size - 1) // DWORD + 1)
        }
        if dwords:
            clocks += max(Counter(dword % served.banks for dword in dwords).values())
            taken += 1
    return clocks, clocks - taken
