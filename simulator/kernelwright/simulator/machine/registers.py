"""The registers of one wave and its position, laid out so that a lane-wise operation is one array operation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.target import Target
from kernelwright.simulator.machine.words import POISON, Words

VGPRS = 256  # rows 0-255 are VGPRs, rows 256-511 are AGPRs
SPARE = 4  # rows from 512 on, which no instruction can name, for steps that need temporaries
VCC, EXEC = 106, 126


class Registers:
    """The registers of one wave, and its place in the workgroup. Vector registers have one column per lane.

    ``v`` is (516, lanes) uint32, ``singles`` and ``halves`` are the same seen as fp32 and as uint16; ``u``, ``i`` and
    ``f`` are lists of its rows seen as uint32, int32 and fp32: indexing a list is three times cheaper than indexing an
    array. ``s`` holds scalar operands 0-127 as Python ints below 2**32; EXEC is kept apart in ``exec`` (a Python int,
    one bit per lane) together with ``mask`` (bool per lane) and ``full`` (all lanes active), which :meth:`set_exec`
    keeps consistent. VCC is ``s[106]`` and ``s[107]``.

    Memories and barriers are written against this class; a :class:`~kernelwright.simulator.machine.wave.Wave` adds
    those that the wave can reach.
    """

    __slots__ = (
        "checks",
        "exec",
        "f",
        "full",
        "halves",
        "i",
        "index",
        "lane_ids",
        "lanes",
        "mask",
        "mode",
        "pc",
        "s",
        "scc",
        "signals",
        "singles",
        "state",
        "target",
        "u",
        "v",
        "waits",
        "workgroup",
    )  # fmt: skip

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lanes = target.lanes
        self.lane_ids = np.arange(self.lanes, dtype=np.int64)
        self.v: Words = np.full((2 * VGPRS + SPARE, self.lanes), POISON, np.uint32)
        self.singles: NDArray[np.float32] = self.v.view(np.float32)
        self.halves: NDArray[np.uint16] = self.v.view(np.uint16)  # (516, 2 lanes)
        self.u: list[Words] = list(self.v)
        self.i: list[NDArray[np.int32]] = list(self.v.view(np.int32))
        self.f: list[NDArray[np.float32]] = list(self.v.view(np.float32))
        self.s: list[int] = [POISON] * 128
        self.scc = 0
        self.mode = 0  # the MODE register: round and denormal modes of the kernel descriptor
        self.pc = 0  # index of the next instruction in the program, not a byte offset
        self.signals = self.waits = 0  # number of times that it has arrived at the workgroup's barrier, and passed it
        self.checks: Any = None  # the checks' state for this wave
        self.workgroup = (0, 0, 0)
        self.index = 0  # of this wave in its workgroup
        self.state = ""  # why it does not run: "", "barrier", "done"
        self.set_exec((1 << self.lanes) - 1)

    def set_exec(self, bits: int) -> None:
        """Set the mask of active lanes."""
        self.exec = bits
        self.full = bits == (1 << self.lanes) - 1
        self.mask = to_mask(bits, self.lanes)

    def reset(self) -> None:
        """Restore the state of a wave that has not started: registers hold POISON."""
        self.v.fill(POISON)
        self.s[:] = [POISON] * 128
        self.scc = self.pc = self.signals = self.waits = 0
        self.state = ""

    def read_scalar(self, index: int) -> int:
        """32 bits of scalar operand ``index`` (0-127)."""
        if index == EXEC:
            return self.exec & 0xFFFFFFFF
        if index == EXEC + 1:
            return self.exec >> 32
        return 0 if index == self.target.null else self.s[index]

    def write_scalar(self, index: int, value: int) -> None:
        """Set 32 bits of scalar operand ``index`` (0-127); writes to null vanish."""
        if index == EXEC:
            self.set_exec((self.exec & ~0xFFFFFFFF) | value)
        elif index == EXEC + 1:
            if self.lanes == 64:
                self.set_exec((self.exec & 0xFFFFFFFF) | value << 32)
        elif index != self.target.null:
            self.s[index] = value

    def read_scalar64(self, index: int) -> int:
        """64 bits of the pair that starts at ``index``."""
        if index == EXEC:
            return self.exec
        return 0 if index == self.target.null else self.s[index] | self.s[index + 1] << 32

    def write_scalar64(self, index: int, value: int) -> None:
        """Set the pair that starts at ``index``."""
        if index == EXEC:
            self.set_exec(value & ((1 << self.lanes) - 1))
        elif index != self.target.null:
            self.s[index] = value & 0xFFFFFFFF
            self.s[index + 1] = value >> 32 & 0xFFFFFFFF

    def read_mask(self, index: int) -> int:
        """A lane mask (VCC, EXEC or SGPRs): 64 bits on wave64, 32 on wave32."""
        return self.read_scalar64(index) if self.lanes == 64 else self.read_scalar(index)

    def write_mask(self, index: int, bits: int) -> None:
        """Set a lane mask."""
        if self.lanes == 64:
            self.write_scalar64(index, bits)
        else:
            self.write_scalar(index, bits)


def to_mask(bits: int, lanes: int) -> NDArray[np.bool_]:
    """One bool per lane from an integer, lane 0 in bit 0."""
    packed = np.frombuffer(bits.to_bytes(lanes // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little").view(np.bool_)


def to_bits(mask: NDArray[np.bool_]) -> int:
    """The integer of a mask, lane 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
