"""The counters of ``s_waitcnt``: which memory instructions each counts, and which have certainly arrived after a wait.

Memory instructions of one counter return in order, except scalar loads and flat accesses (LLVM, SIInsertWaitcnts and
AMDGPUUsage, "Memory Model"). After a wait for ``n``, an ordered access has arrived if at least ``n`` later ones were
issued; an unordered access has arrived only after a wait for 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.machine.memory import SHARED_APERTURE

PLAIN = re.compile("_(load|read|store|write)(_|2)")  # in names of loads and stores; atomics have others (cmpstore)

# A full counter stalls the next access, so LLVM emits no wait for an access with 63 later ones outstanding.
_SIX_BITS = ("vmcnt", "vscnt", "loadcnt", "storecnt", "dscnt")
_MOST = 63


class Access:
    """One executed memory instruction of a wave; ``due`` are the counters that still count it.

    ``signals`` is the number of times that the wave had arrived at the barrier. ``direct``: it bypasses registers and
    writes LDS.
    """

    __slots__ = ("atomic", "direct", "due", "instruction", "ordered", "signals", "wave")

    def __init__(self, instruction: Instruction, wave: int, signals: int, due: tuple[str, ...], ordered: bool) -> None:
        self.instruction, self.wave, self.signals, self.ordered = instruction, wave, signals, ordered
        self.due = set(due)
        self.direct = bool(instruction.get("lds"))
        self.atomic = not PLAIN.search(instruction.name)

    def __str__(self) -> str:
        """The instruction, its pc, and the counters to wait for, as shown in faults."""
        return f"{self.instruction.name} at pc {self.instruction.pc:#x}, which {' and '.join(sorted(self.due))} counts"


def counters_of(instruction: Instruction, target: Target) -> tuple[tuple[str, ...], bool]:
    """The counters that count an instruction, none unless it accesses memory, and whether it returns in order."""
    encoding, name = instruction.encoding.removeprefix("V"), instruction.name
    new = target.tables == "rdna4"
    lds, scalar = ("dscnt", "kmcnt") if new else ("lgkmcnt", "lgkmcnt")
    if encoding == "DS":
        return (lds,), True
    if encoding == "SMEM":
        return (scalar,), False
    if encoding not in ("FLAT", "GLOBAL", "SCRATCH", "MUBUF", "BUFFER"):
        return (), True
    loads = "loadcnt" if new else "vmcnt"
    stores = "storecnt" if new else "vmcnt" if target.cdna else "vscnt"
    returns = instruction.get("glc") or instruction.get("sc0") or instruction.get("th") & 1
    only_stores = "store" in name or ("atomic" in name and not returns)
    vector = stores if only_stores else loads
    return ((vector, lds), False) if encoding == "FLAT" else ((vector,), True)


def flat_counters(counters: tuple[str, ...], high: Any) -> tuple[tuple[str, ...], bool]:
    """As :func:`counters_of`, for a flat access to addresses with these high halves: LDS and memory have their own.

    Compilers wait for one counter if they know where a pointer points (LLVM, ``mayAccessLDSThroughFlat``).
    """
    in_lds = high == SHARED_APERTURE
    if not in_lds.any():
        return counters[:1], True
    return (counters[1:], True) if in_lds.all() else (counters, False)


def waits_of(instruction: Instruction, target: Target) -> Mapping[str, int]:
    """Counter → maximum outstanding accesses after a wait instruction; counters that it does not wait for are absent.

    The fields of ``s_waitcnt`` are those of LLVM's AMDGPUBaseInfo (getVmcntBitMask and similar functions).
    """
    name, value = instruction.name, instruction.get("simm16")
    if name == "s_waitcnt":
        if target.cdna:
            fields = {"vmcnt": (value & 15 | value >> 14 << 4, 63), "lgkmcnt": (value >> 8 & 15, 15)}
        else:
            fields = {"vmcnt": (value >> 10, 63), "lgkmcnt": (value >> 4 & 63, 63)}
        return {counter: count for counter, (count, most) in fields.items() if count != most}
    counters = [
        word for word in name.removeprefix("s_waitcnt_").removeprefix("s_wait_").split("_") if word[-3:] == "cnt"
    ]
    if len(counters) == 2:
        return {counters[0]: value >> 8 & 63, counters[1]: value & 63}
    return {counter: value for counter in counters}


class Traffic:
    """The outstanding accesses of one wave. ``vectors`` and ``scalars``: register → the access that will write it."""

    def __init__(self) -> None:
        self.vectors: dict[int, Access] = {}
        self.scalars: dict[int, Access] = {}
        self._queues: dict[str, list[Access]] = {}

    def issue(self, access: Access) -> None:
        """Start an access."""
        for counter in tuple(access.due):
            queue = self._queues.setdefault(counter, [])
            queue.append(access)
            if counter in _SIX_BITS and len(queue) > _MOST:
                self.wait(counter, _MOST)

    def wait(self, counter: str, count: int) -> None:
        """Retire the accesses that have certainly arrived once ``counter`` is at most ``count``."""
        queue = self._queues.get(counter, [])
        kept = [access for access in queue if access.ordered][-count:] if count else []
        left = [access for access in queue if count and (not access.ordered or access in kept)]
        for access in queue:
            if access not in left:
                access.due.discard(counter)
        self._queues[counter] = left
        self.vectors = {row: access for row, access in self.vectors.items() if access.due}
        self.scalars = {number: access for number, access in self.scalars.items() if access.due}
