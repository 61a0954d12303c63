"""The LDS of one workgroup. All accesses go through its methods, which the checks override."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.words import (
    POISON,
    STEPS,
    Update,
    Words,
    any_bits,
    check_aligned,
    modify,
    take_wide,
    wide_views,
)

Offsets = NDArray[np.int64]


class Lds:
    """``nbytes`` of memory with byte addresses from 0, initially POISON.

    Addresses are int64 (n,), of the active lanes only. Loads and stores may be unaligned (as in :class:`Memory`).
    Trap for any byte outside; hardware would return 0 or drop the store.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._all = np.full(-(-nbytes // 4), POISON, np.uint32)
        self.bytes: NDArray[np.uint8] = self._all.view(np.uint8)[:nbytes]
        self.words: Words = self._all[: nbytes // 4]
        self._wide = wide_views(self.words)
        self._halves: NDArray[np.uint16] = self.bytes[: nbytes & ~1].view(np.uint16)

    def load(self, wave: Registers, addresses: Offsets, dwords: int) -> Words:
        """(n,) addresses → (dwords, n)."""
        bits = int(any_bits(addresses))
        if bits >= 0 and not bits & 3:
            try:
                if dwords in self._wide and not bits & 4 * dwords - 1:
                    return take_wide(self._wide[dwords], addresses, dwords)
                return self.words.take((addresses >> 2) + STEPS[dwords])
            except IndexError:
                pass
        return self._load_bytes(addresses, 4 * dwords).view(np.uint32).T

    def load_small(self, wave: Registers, addresses: Offsets, nbytes: int) -> Words:
        """(n,) addresses → (n,), one or two bytes each, zero-extended."""
        if nbytes == 2 and self._fits(addresses, 2):
            halves: NDArray[np.uint16] = self._halves[addresses >> 1]
            return halves.astype(np.uint32)
        return self._load_bytes(addresses, nbytes).view(f"u{nbytes}")[:, 0].astype(np.uint32)

    def store(self, wave: Registers, addresses: Offsets, data: Words) -> None:
        """Store (dwords, n) at (n,) addresses; if lanes overlap, the highest wins."""
        if self._fits(addresses, 4, len(data)):
            self.words[(addresses >> 2) + STEPS[len(data)]] = data
            return
        self._store_bytes(addresses, np.ascontiguousarray(data.T).view(np.uint8))

    def store_small(self, wave: Registers, addresses: Offsets, data: Words, nbytes: int) -> None:
        """Store the low one or two bytes of (n,) at (n,) addresses."""
        if nbytes == 2 and self._fits(addresses, 2):
            self._halves[addresses >> 1] = data.astype(np.uint16)
            return
        self._store_bytes(addresses, np.ascontiguousarray(data).view(np.uint8).reshape(-1, 4)[:, :nbytes])

    def atomic(self, wave: Registers, addresses: Offsets, dwords: int, update: Update) -> Words:
        """Read, modify and write (n,) addresses, lane by lane in ascending order; returns old contents (dwords, n)."""
        self._check(addresses, 4 * dwords)
        check_aligned(addresses, dwords)
        return modify(self.words, addresses >> 2, dwords, np.arange(len(addresses)), update)

    def _fits(self, addresses: Offsets, unit: int, count: int = 1) -> bool:
        """Whether the addresses are aligned to ``unit`` and ``count`` units at each of them are inside."""
        bits, last = int(any_bits(addresses)), self.nbytes - unit * count
        return bits >= 0 and not bits & unit - 1 and (bits <= last or int(addresses.max()) <= last)

    def _load_bytes(self, addresses: Offsets, nbytes: int) -> NDArray[np.uint8]:
        self._check(addresses, nbytes)
        content: NDArray[np.uint8] = self.bytes[addresses[:, None] + np.arange(nbytes)]
        return content

    def _store_bytes(self, addresses: Offsets, data: NDArray[np.uint8]) -> None:
        nbytes = data.shape[1]
        self._check(addresses, nbytes)
        self.bytes[addresses[:, None] + np.arange(nbytes)] = data

    def _check(self, addresses: Offsets, nbytes: int) -> None:
        outside = (addresses < 0) | (addresses > self.nbytes - nbytes)
        if outside.any():
            raise Trap(
                f"an access of {nbytes} bytes outside LDS (the workgroup has {self.nbytes} bytes)",
                int(addresses[outside.argmax()]),
            )
