"""Global memory: registered regions of host memory, and nothing else.

Accesses take the wave, as in LDS, so that semantics treat both alike; addresses are those of the active lanes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.registers import Registers
from kernelwright.simulator.machine.words import (
    STEPS,
    Update,
    Words,
    any_bits,
    check_aligned,
    modify,
    take_wide,
    wide_views,
)

Addresses = NDArray[np.uint64]

# High halves of flat addresses that select LDS and scratch (the values that the Linux driver sets since gfx9).
SHARED_APERTURE = 0x0001_0000
PRIVATE_APERTURE = 0x0002_0000


@dataclass(frozen=True, eq=False)
class Region:
    """``data`` (uint8) holds the bytes of memory from ``address`` on.

    It may be a copy in shared memory, at the same address modulo 16; ValueError for any other alignment.
    """

    address: int
    data: NDArray[np.uint8]
    writable: bool = True
    name: str = ""
    first: int = field(init=False)  # address of the first whole dword
    words: Words = field(init=False)  # the whole dwords
    wide: dict[int, NDArray[Any]] = field(init=False)  # the same by two and four, from ``first`` on

    def __post_init__(self) -> None:
        """Create the views of whole dwords that the fast paths use."""
        if self.data.size and (self.data.ctypes.data - self.address) % 16:
            raise ValueError(f"region {self.name or hex(self.address)}: its data has another alignment modulo 16")
        skip = -self.address % 4
        count = max(0, self.data.size - skip) // 4
        object.__setattr__(self, "first", self.address + skip)
        object.__setattr__(self, "words", self.data[skip : skip + 4 * count].view(np.uint32))
        object.__setattr__(self, "wide", wide_views(self.words))

    @property
    def end(self) -> int:
        """Address of the first byte after the region."""
        return self.address + self.data.size

    def __str__(self) -> str:
        """``C at 0x1000 (256 bytes, read-only)``."""
        kind = "" if self.writable else ", read-only"
        return f"{self.name or 'a buffer'} at {self.address:#x} ({self.data.size} bytes{kind})"


class Memory:
    """The memory that a kernel may access. Traps on a byte outside all regions, and on a store to a read-only one.

    Loads and stores may be unaligned, as the driver configures gfx9 and later (SH_MEM_CONFIG.ALIGNMENT_MODE); atomics
    must be aligned. ``lock`` makes atomics exclusive between processes that share the regions' data.
    """

    def __init__(self, regions: Sequence[Region], lock: AbstractContextManager[object] | None = None) -> None:
        self.regions = tuple(sorted(regions, key=lambda region: region.address))
        self.lock = lock or nullcontext()
        self._last = self.regions[0] if self.regions else None

    def find(self, address: int, nbytes: int = 1) -> Region | None:
        """The region that contains all of ``nbytes`` from ``address`` on, or None."""
        last = self._last
        if last is not None and last.address <= address and address + nbytes <= last.end:
            return last
        for region in self.regions:
            if region.address <= address and address + nbytes <= region.end:
                self._last = region
                return region
        return None

    def load(self, wave: Registers, addresses: Addresses, dwords: int) -> Words:
        """(n,) addresses → (dwords, n)."""
        region = self.find(int(addresses[0]))
        if region is not None:
            offsets = (addresses - np.uint64(region.first)).view(np.int64)
            bits = int(any_bits(offsets))
            if bits >= 0 and not bits & 3:
                try:
                    if dwords in region.wide and not bits & 4 * dwords - 1:
                        return take_wide(region.wide[dwords], offsets, dwords)
                    return region.words.take((offsets >> 2) + STEPS[dwords])
                except IndexError:
                    pass  # some lane is in another region, or in none
        return self._load_bytes(addresses, 4 * dwords).view(np.uint32).T

    def load_small(self, wave: Registers, addresses: Addresses, nbytes: int) -> Words:
        """(n,) addresses → (n,), one or two bytes each, zero-extended."""
        halves = self._halves(addresses) if nbytes == 2 else None
        if halves is not None:
            region, index = halves
            return region.words.view(np.uint16)[index].astype(np.uint32)
        return self._load_bytes(addresses, nbytes).view(f"u{nbytes}")[:, 0].astype(np.uint32)

    def store(self, wave: Registers, addresses: Addresses, data: Words) -> None:
        """Store (dwords, n) at (n,) addresses; if lanes overlap, the highest wins."""
        region = self.find(int(addresses[0]))
        if region is not None and region.writable:
            offsets = (addresses - np.uint64(region.first)).view(np.int64)
            bits = int(any_bits(offsets))
            limit = 4 * (region.words.size - len(data))
            if bits >= 0 and not bits & 3 and (bits <= limit or int(offsets.max()) <= limit):
                region.words[(offsets >> 2) + STEPS[len(data)]] = data
                return
        self._store_bytes(addresses, np.ascontiguousarray(data.T).view(np.uint8))

    def store_small(self, wave: Registers, addresses: Addresses, data: Words, nbytes: int) -> None:
        """Store the low one or two bytes of (n,) at (n,) addresses."""
        halves = self._halves(addresses) if nbytes == 2 else None
        if halves is not None and halves[0].writable:
            region, index = halves
            region.words.view(np.uint16)[index] = data.astype(np.uint16)
            return
        self._store_bytes(addresses, np.ascontiguousarray(data).view(np.uint8).reshape(-1, 4)[:, :nbytes])

    def load_scalar(self, wave: Registers, address: int, dwords: int) -> list[int]:
        """``dwords`` words from one dword-aligned address."""
        region = self.find(address, 4 * dwords)
        if region is None:
            raise self._trap(address, 4 * dwords, "a scalar load")
        if region.address % 4:
            raw = region.data[address - region.address :][: 4 * dwords]
            return [int(word) for word in raw.copy().view(np.uint32)]
        at = (address - region.address) >> 2
        words: list[int] = region.words[at : at + dwords].tolist()
        return words

    def atomic(self, wave: Registers, addresses: Addresses, dwords: int, update: Update) -> Words:
        """Read, modify and write (n,) addresses, lane by lane in ascending order; returns old contents (dwords, n)."""
        before = np.empty((dwords, len(addresses)), np.uint32)
        with self.lock:
            for region, lanes in self._split(addresses, 4 * dwords, "an atomic"):
                self._must_write(region, int(addresses[lanes[0]]))
                offsets = (addresses[lanes] - np.uint64(region.first)).view(np.int64)
                check_aligned(addresses[lanes], dwords)
                before[:, lanes] = modify(region.words, offsets >> 2, dwords, lanes, update)
        return before

    def _halves(self, addresses: Addresses) -> tuple[Region, NDArray[np.int64]] | None:
        """The region and indices of aligned half dwords; None if lanes are unaligned or in several regions."""
        region = self.find(int(addresses[0]))
        if region is None:
            return None
        offsets = (addresses - np.uint64(region.first)).view(np.int64)
        bits = int(any_bits(offsets))
        if bits < 0 or bits & 1 or int(offsets.max()) > region.words.nbytes - 2:
            return None
        return region, offsets >> 1

    def _load_bytes(self, addresses: Addresses, nbytes: int) -> NDArray[np.uint8]:
        content = np.empty((len(addresses), nbytes), np.uint8)
        for region, lanes in self._split(addresses, nbytes, "a load"):
            offsets = (addresses[lanes] - np.uint64(region.address)).view(np.int64)
            content[lanes] = region.data[offsets[:, None] + np.arange(nbytes)]
        return content

    def _store_bytes(self, addresses: Addresses, data: NDArray[np.uint8]) -> None:
        nbytes = data.shape[1]
        for region, lanes in self._split(addresses, nbytes, "a store"):
            self._must_write(region, int(addresses[lanes[0]]))
            offsets = (addresses[lanes] - np.uint64(region.address)).view(np.int64)
            region.data[offsets[:, None] + np.arange(nbytes)] = data[lanes]

    def _split(self, addresses: Addresses, nbytes: int, what: str) -> list[tuple[Region, NDArray[np.int64]]]:
        """Each region with its lanes. Trap, before anything is accessed, if a lane is outside all regions."""
        rest = np.arange(len(addresses))
        parts = []
        while rest.size:
            region = self.find(int(addresses[rest[0]]), nbytes)
            if region is None:
                raise self._trap(int(addresses[rest[0]]), nbytes, what)
            start, last = np.uint64(region.address), np.uint64(region.end - nbytes)
            inside = (addresses[rest] >= start) & (addresses[rest] <= last)
            parts.append((region, rest[inside]))
            rest = rest[~inside]
        return parts

    def _must_write(self, region: Region, address: int) -> None:
        if not region.writable:
            raise Trap(f"a write to read-only memory: {region}", address)

    def _trap(self, address: int, nbytes: int, what: str) -> Trap:
        if not self.regions:
            return Trap(f"{what} of {nbytes} bytes, but no memory is registered", address)
        nearest = min(self.regions, key=lambda region: max(region.address - address, address + nbytes - region.end))
        below = nearest.address - address
        where = f"{below} bytes before" if below > 0 else f"{address + nbytes - nearest.end} bytes past the end of"
        return Trap(f"{what} of {nbytes} bytes outside all registered memory, {where} {nearest}", address)
