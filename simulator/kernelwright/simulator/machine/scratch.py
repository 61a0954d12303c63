"""The scratch of one wave: private bytes per lane, laid out so that a common offset of all lanes is one row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.words import POISON, Words

Offsets = NDArray[np.int64]

# The descriptor (V#) through which gfx90a accesses scratch: swizzled, with the lane in the address. Its base is unused.
BUFFER = (0, 0x8000_0000 | 0xA000, 0xFFFF_FFFF, 1 << 23)


class Scratch:
    """``nbytes`` per lane with byte offsets from 0, initially POISON.

    ``offsets`` is int64 (n,), one for each active lane in ``lanes`` (n,). The row methods serve dword-aligned offsets
    that all lanes share, as spills do. Trap for any byte outside.
    """

    def __init__(self, nbytes: int, lanes: int) -> None:
        self.nbytes = nbytes
        self.words: Words = np.full((-(-nbytes // 4), lanes), POISON, np.uint32)

    def load_row(self, wave: Registers, offset: int, dwords: int) -> Words:
        """One offset for all lanes → (dwords, all lanes); may be a view."""
        return self.words[self._row(offset, 4 * dwords) :][:dwords]

    def store_row(self, wave: Registers, offset: int, data: Words) -> None:
        """Store (dwords, all lanes) at one offset, in the active lanes of the wave."""
        rows = self.words[self._row(offset, 4 * len(data)) :][: len(data)]
        np.copyto(rows, data, where=wave.mask)

    def load(self, wave: Registers, lanes: Offsets, offsets: Offsets, nbytes: int) -> NDArray[np.uint8]:
        """(n,) offsets → (n, nbytes)."""
        self._check(offsets, nbytes)
        at = offsets[:, None] + np.arange(nbytes)
        words: Words = self.words[at >> 2, lanes[:, None]]
        return (words >> (8 * (at & 3)).astype(np.uint32)).astype(np.uint8)

    def store(self, wave: Registers, lanes: Offsets, offsets: Offsets, data: NDArray[np.uint8]) -> None:
        """Store (n, nbytes) at (n,) offsets."""
        self._check(offsets, data.shape[1])
        for column in range(data.shape[1]):
            at = offsets + column
            shift = (8 * (at & 3)).astype(np.uint32)
            kept = self.words[at >> 2, lanes] & ~(np.uint32(0xFF) << shift)
            self.words[at >> 2, lanes] = kept | data[:, column].astype(np.uint32) << shift

    def _row(self, offset: int, nbytes: int) -> int:
        if offset % 4:
            raise ValueError("rows of scratch are dwords")
        self._check(np.array([offset]), nbytes)
        return offset >> 2

    def _check(self, offsets: Offsets, nbytes: int) -> None:
        outside = (offsets < 0) | (offsets > self.nbytes - nbytes)
        if outside.any():
            raise Trap(
                f"an access of {nbytes} bytes outside scratch (a lane has {self.nbytes} bytes)",
                int(offsets[outside.argmax()]),
            )
