"""LDS that records the last accesses of each byte, for all three checks: races, unset bytes, missing waits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.checks.counters import Access
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.lds import Lds, Offsets
from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.words import Update, Words


class CheckedLds(Lds):
    """LDS of a workgroup of ``waves`` waves; each wave's ``checks.access`` is its current access.

    A wave's access happens before another's if the wave arrived at a barrier after it, and the other passed that
    barrier before its own (arriving and passing are apart on gfx12). Two accesses of a byte race if neither happens
    before the other, one of them writes, and they are not both atomic.
    """

    def __init__(self, nbytes: int, waves: int, checks: Checks) -> None:
        super().__init__(nbytes)
        self._checks = checks
        self._known = np.zeros(nbytes, np.bool_)
        self._accesses: list[Access] = []
        # Per wave and byte: number of its last access; numbers rise, so that the largest of several is the last.
        self._written = np.full((waves, nbytes), -1, np.int32)
        self._read = np.full((waves, nbytes), -1, np.int32)

    def load(self, wave: Registers, addresses: Offsets, dwords: int) -> Words:
        """As in :class:`Lds`, with the checks; Trap for what they find."""
        words = super().load(wave, addresses, dwords)
        self._reads(wave, addresses, 4 * dwords)
        return words

    def load_small(self, wave: Registers, addresses: Offsets, nbytes: int) -> Words:
        """As in :class:`Lds`, with the checks; Trap for what they find."""
        words = super().load_small(wave, addresses, nbytes)
        self._reads(wave, addresses, nbytes)
        return words

    def store(self, wave: Registers, addresses: Offsets, data: Words) -> None:
        """As in :class:`Lds`, with the checks; Trap for what they find."""
        self._writes(wave, addresses, 4 * len(data), data.T)
        super().store(wave, addresses, data)

    def store_small(self, wave: Registers, addresses: Offsets, data: Words, nbytes: int) -> None:
        """As in :class:`Lds`, with the checks; Trap for what they find."""
        self._writes(wave, addresses, nbytes, data[:, None])
        super().store_small(wave, addresses, data, nbytes)

    def atomic(self, wave: Registers, addresses: Offsets, dwords: int, update: Update) -> Words:
        """As in :class:`Lds`, with the checks; Trap for what they find."""
        self._check(addresses, 4 * dwords)
        self._reads(wave, addresses, 4 * dwords)
        self._writes(wave, addresses, 4 * dwords)
        return super().atomic(wave, addresses, dwords, update)

    def _reads(self, wave: Registers, addresses: Offsets, nbytes: int) -> None:
        at = _bytes(addresses, nbytes)
        if self._checks.uninitialised and not self._known[at].all():
            raise Trap("reads LDS that nobody has written", int(at[self._known[at].argmin()]))
        self._compare(wave, at, self._written, "reads", "write")
        self._read[wave.index, at] = self._number(wave.checks.access)

    def _writes(self, wave: Registers, addresses: Offsets, nbytes: int, data: Words | None = None) -> None:
        self._check(addresses, nbytes)
        at = changed = _bytes(addresses, nbytes)
        if self._checks.equal_writes and data is not None:
            stored = np.ascontiguousarray(data).view(np.uint8).reshape(len(addresses), -1)[:, :nbytes]
            changed = at[(self.bytes[at] != stored.reshape(-1)) | ~self._known[at]]
        self._known[at] = True
        if len(changed):
            self._compare(wave, changed, self._written, "writes", "write")
            self._compare(wave, changed, self._read, "writes", "read")
        self._written[wave.index, at] = self._number(wave.checks.access)

    def _compare(self, wave: Registers, at: NDArray[np.int64], table: NDArray[np.int32], does: str, other: str) -> None:
        """Trap if this access to the bytes ``at`` races with one in the table, or does not wait for it."""
        touched = table[:, at]
        for index, number in enumerate(touched.max(axis=1).tolist()):
            if number < 0:
                continue
            access = self._accesses[number]
            if index == wave.index and not (access.direct and other == "write"):
                continue  # a wave's own LDS instructions are in order
            reason = self._conflict(wave, access, index)
            if reason:
                address = int(at[touched[index].argmax()])
                raise Trap(f"{does} LDS that wave {index}'s {other} {reason}", address)

    def _conflict(self, wave: Registers, access: Access, index: int) -> str:
        atomic = access.atomic and wave.checks.access.atomic
        if self._checks.races and index != wave.index and access.signals >= wave.waits and not atomic:
            name, pc = access.instruction.name, access.instruction.pc
            return f"({name} at pc {pc:#x}) touches too, with no barrier between: a race"
        if self._checks.waits and access.due:
            return f"({access}) may not have finished: nobody waited for it"
        return ""

    def _number(self, access: Access) -> int:
        if not self._accesses or self._accesses[-1] is not access:
            self._accesses.append(access)
        return len(self._accesses) - 1


def _bytes(addresses: Offsets, nbytes: int) -> NDArray[np.int64]:
    byte_addresses: NDArray[np.int64] = (addresses[:, None] + np.arange(nbytes)).reshape(-1)
    return byte_addresses
