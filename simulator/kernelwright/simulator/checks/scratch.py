"""Scratch that records which dwords hold set values, so that unset registers stay unset through spill and reload."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.scratch import Offsets, Scratch
from kernelwright.simulator.machine.words import Words


class CheckedScratch(Scratch):
    """``wave.checks.stored`` (dwords, lanes) says which data of a store are set; loads leave the same in ``loaded``.

    Only stores of whole rows pass on unset data; all others count as set.
    """

    def __init__(self, nbytes: int, lanes: int) -> None:
        super().__init__(nbytes, lanes)
        self._known = np.zeros(self.words.shape, np.bool_)

    def load_row(self, wave: Registers, offset: int, dwords: int) -> Words:
        """As in :class:`Scratch`."""
        words = super().load_row(wave, offset, dwords)
        wave.checks.loaded = self._known[offset >> 2 :][:dwords]
        return words

    def store_row(self, wave: Registers, offset: int, data: Words) -> None:
        """As in :class:`Scratch`."""
        super().store_row(wave, offset, data)
        stored = True if wave.checks.stored is None else wave.checks.stored  # None: through a buffer
        np.copyto(self._known[offset >> 2 :][: len(data)], stored, where=wave.mask)

    def load(self, wave: Registers, lanes: Offsets, offsets: Offsets, nbytes: int) -> NDArray[np.uint8]:
        """As in :class:`Scratch`."""
        content = super().load(wave, lanes, offsets, nbytes)
        known = np.ones((-(-nbytes // 4), wave.lanes), np.bool_)
        for dword in range(len(known)):
            last = np.minimum(offsets + 4 * dword + 3, offsets + nbytes - 1)
            known[dword, lanes] = self._known[(offsets + 4 * dword) >> 2, lanes] & self._known[last >> 2, lanes]
        wave.checks.loaded = known
        return content

    def store(self, wave: Registers, lanes: Offsets, offsets: Offsets, data: NDArray[np.uint8]) -> None:
        """As in :class:`Scratch`."""
        super().store(wave, lanes, offsets, data)
        for byte in range(data.shape[1]):
            self._known[(offsets + byte) >> 2, lanes] = True
