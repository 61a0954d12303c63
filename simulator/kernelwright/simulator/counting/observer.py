"""Executed counts of launches: instructions, LDS clocks and bank conflicts, lines of global memory."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.files.counts.conflicts import conflicts
from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.files.counts.line import access_of, kind_of
from kernelwright.files.counts.mix import Mix, lds_access, mix_of
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.counting.lines import line_of
from kernelwright.simulator.instructions.memory.buffer import Resource
from kernelwright.simulator.instructions.memory.flat import addresses_of
from kernelwright.simulator.instructions.memory.lds import lds_place, one_offset, pair_offsets, place
from kernelwright.simulator.instructions.memory.transfer import LOADS, STORES
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.wave import Wave

LINE_BYTES = 128
"""Bytes of a line of the L2 cache of CDNA."""
SEGMENT_BYTES = 64
"""Bytes of a transaction of HBM."""
Ran = Mapping[tuple[int, int], int]
Places = Callable[[Wave], NDArray[np.int64]]


@dataclass
class LdsCount:
    """One static LDS instruction: ``clocks`` of the compute unit's LDS in all its executions, and those that bank
    conflicts add (rocprof: ``SQ_LDS_BANK_CONFLICT``). ``assumed``: its phases are not measured."""

    clocks: int = 0
    conflicts: int = 0
    assumed: bool = False


class Counts:
    """Counts one launch; a further launch with the same object starts anew, and so does each of its ``seeds``.

    ``executed``: text offset of an instruction → executions, summed over waves; ``lds``: text offset → its
    :class:`LdsCount`; ``lines`` and ``segments``: text offset → lines of 128 bytes and segments of 64 that its
    executions touch, each counted once per execution of a wave; ``unique_lines``: lines of the whole launch. ``mix``
    counts all instructions of all waves.

    Memory is counted in one process and takes time: about 30,000 memory instructions a second.
    """

    def __init__(self) -> None:
        self.symbol = ""
        self.executed: dict[int, int] = {}
        self.lds: dict[int, LdsCount] = {}
        self.lines: Counter[int] = Counter()
        self.segments: Counter[int] = Counter()
        self.mix = Mix()
        self._touched: set[int] = set()
        self._known: dict[bytes, tuple[int, int]] = {}  # patterns of lanes and addresses of the launch

    @property
    def conflicts(self) -> int:
        """Clocks added by bank conflicts, over all instructions and waves."""
        return sum(one.conflicts for one in self.lds.values())

    @property
    def unique_lines(self) -> int:
        """Lines of 128 bytes of global memory that the launch touches."""
        return len(self._touched)

    def as_json(self) -> dict[str, Any]:
        """``symbol`` of the launched kernel, sums over all waves, and ``instructions`` with each executed offset.

        Names are those of ``kernelwright quality``, which reads it (``--executed``).
        """
        each = [
            {
                "offset": pc,
                "executed": times,
                **(asdict(self.lds[pc]) if pc in self.lds else {}),
                **({"lines": self.lines[pc], "segments": self.segments[pc]} if pc in self.lines else {}),
            }
            for pc, times in sorted(self.executed.items())
        ]
        return {
            "symbol": self.symbol,
            "mix": asdict(self.mix),
            "conflicts": self.conflicts,
            "lines": sum(self.lines.values()),
            "segments": sum(self.segments.values()),
            "unique_lines": self.unique_lines,
            "instructions": each,
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`as_json` to a file. Raises OSError if it cannot be written."""
        Path(path).write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")

    def begin(self, symbol: str) -> None:
        """Start counting a launch of a kernel."""
        self.symbol = symbol
        for one in (self.lds, self.lines, self.segments, self._touched, self._known):
            one.clear()

    def end(self, instructions: list[Instruction], ran: Iterable[Ran], target: Target) -> None:
        """Finish a launch: which runs [start, stop) of ``instructions`` were executed, and how often."""
        times = np.zeros(len(instructions) + 1, np.int64)
        for part in ran:
            for (start, stop), count in part.items():
                times[start] += count
                times[stop] -= count
        total = times.cumsum()[:-1].tolist()
        self.executed = {one.pc: count for one, count in zip(instructions, total, strict=True) if count}
        executed = ((line_of(one), count) for one, count in zip(instructions, total, strict=True) if count)
        self.mix = mix_of(executed, instruction_set(target.instructions))

    def watch(self, instruction: Instruction, step: Step, target: Target) -> Step:
        """Wrap ``step`` to count its accesses first; ``step`` itself if it has none."""
        kind = kind_of(instruction.name)
        if kind == "lds":
            return self._watch_lds(instruction, step, target)
        if kind == "global":
            return self._watch_global(instruction, step, target)
        return step

    def _watch_lds(self, instruction: Instruction, step: Step, target: Target) -> Step:
        access, count = access_of(line_of(instruction))
        served = lds_access(access)
        if served is None:  # moves data between lanes, or is an atomic
            return step
        row = instruction.operands["addr"].index
        offsets = (one_offset(instruction),) if count == 1 else pair_offsets(instruction)
        places = [_at(row, offset) for offset in offsets]
        return self._serve(instruction, step, target, *served, places)

    def _serve(
        self, instruction: Instruction, step: Step, target: Target, way: str, nbytes: int, places: list[Places]
    ) -> Step:
        served = instruction_set(target.instructions).phases(way, nbytes)
        pc, known = instruction.pc, self._known
        assumed = served.assumed or "_tr_" in instruction.name

        def look(wave: Wave) -> None:
            if wave.exec:
                one = self.lds.setdefault(pc, LdsCount(assumed=assumed))
                lanes = np.flatnonzero(wave.mask).tolist()
                for of in places:
                    addresses = of(wave)
                    key = b"%d %d %d " % (pc, wave.exec, int(addresses[0]) % 256) + (addresses - addresses[0]).tobytes()
                    if key not in known:
                        known[key] = conflicts(addresses.tolist(), lanes, nbytes, served)
                    clocks, extra = known[key]
                    one.clocks += clocks
                    one.conflicts += extra
            step(wave)

        return look

    def _watch_global(self, instruction: Instruction, step: Step, target: Target) -> Step:
        space, verb, what = (*instruction.name.split("_", 2), "")[:3]
        table = {"load": LOADS, "store": STORES}.get(verb)
        if table is None or space == "flat":
            return step
        to_lds = what.startswith("lds_")
        nbytes = table[what.removeprefix("lds_")].nbytes
        reached = _in_buffer(instruction, target, nbytes) if space == "buffer" else addresses_of(instruction, target)
        pc, lines, segments, touched = instruction.pc, self.lines, self.segments, self._touched
        if instruction.get("lds") or to_lds:
            where = lds_place(instruction.get("offset"), target, max(1, nbytes // 4))
            step = self._serve(instruction, step, target, "write", nbytes, [where])

        def look(wave: Wave) -> None:
            if wave.exec:
                addresses = reached(wave).astype(np.int64)
                if len(addresses):
                    parts = np.concatenate([addresses, addresses + nbytes - 1]) // SEGMENT_BYTES
                    reached_segments = set(parts.tolist())
                    reached_lines = {segment * SEGMENT_BYTES // LINE_BYTES for segment in reached_segments}
                    segments[pc] += len(reached_segments)
                    lines[pc] += len(reached_lines)
                    touched.update(reached_lines)
            step(wave)

        return look


def _at(row: int, offset: np.uint32) -> Places:
    """LDS addresses of the active lanes."""
    return lambda wave: place(wave, row, offset)


def _in_buffer(instruction: Instruction, target: Target, nbytes: int) -> Places:
    """Addresses of the active lanes whose first bytes are in range."""
    resource = Resource(instruction, target, nbytes)

    def reached(wave: Wave) -> NDArray[np.int64]:
        if resource.private(wave) is not None:
            return np.zeros(0, np.int64)
        base, records, soffset = resource.base(wave)
        offsets = resource.offsets(wave)
        inside = offsets[resource.in_range(offsets, min(nbytes, 4), records, soffset)]
        addresses: NDArray[np.int64] = inside + (base + soffset)
        return addresses

    return reached
