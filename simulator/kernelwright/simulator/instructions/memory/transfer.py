"""Layout of memory instructions' data in vector registers: widths, sign extension, halves of a register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import Update, Words


class Space(Protocol):
    """Common interface of global memory and LDS. Addresses are those of the active lanes."""

    def load(self, wave: Wave, addresses: Any, dwords: int, /) -> Words: ...  # noqa: D102
    def load_small(self, wave: Wave, addresses: Any, nbytes: int, /) -> Words: ...  # noqa: D102
    def store(self, wave: Wave, addresses: Any, data: Words, /) -> None: ...  # noqa: D102
    def store_small(self, wave: Wave, addresses: Any, data: Words, nbytes: int, /) -> None: ...  # noqa: D102
    def atomic(self, wave: Wave, addresses: Any, dwords: int, update: Update, /) -> Words: ...  # noqa: D102


@dataclass(frozen=True)
class Transfer:
    """``nbytes`` per lane. ``half``: 0 or 1 if only that half of the register is used, None for all of it."""

    nbytes: int
    signed: bool = False
    half: int | None = None

    @property
    def dwords(self) -> int:
        """Registers per lane."""
        return max(1, self.nbytes // 4)


_OLD = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_NEW = {"b32": 4, "b64": 8, "b96": 12, "b128": 16}


def _halves(kinds: dict[str, Transfer], name: str) -> dict[str, Transfer]:
    return {
        name.format(kind, suffix): Transfer(whole.nbytes, whole.signed, half)
        for kind, whole in kinds.items()
        for half, suffix in ((0, "d16"), (1, "d16_hi"))
    }


# Names after "buffer_load_", "global_load_", …: gfx9's, then those of RDNA 3 and 4.
LOADS = {name: Transfer(nbytes) for name, nbytes in (_OLD | _NEW).items()}
LOADS |= {"ubyte": Transfer(1), "sbyte": Transfer(1, True), "ushort": Transfer(2), "sshort": Transfer(2, True)}
LOADS |= {"u8": Transfer(1), "i8": Transfer(1, True), "u16": Transfer(2), "i16": Transfer(2, True)}
LOADS |= _halves({"ubyte": Transfer(1), "sbyte": Transfer(1, True), "short": Transfer(2)}, "{0}_{1}")
LOADS |= _halves({"u8": Transfer(1), "i8": Transfer(1, True), "b16": Transfer(2)}, "{1}_{0}")
STORES = {name: Transfer(nbytes) for name, nbytes in (_OLD | _NEW).items()}
STORES |= {"byte": Transfer(1), "short": Transfer(2), "byte_d16_hi": Transfer(1, half=1)}
STORES |= {"short_d16_hi": Transfer(2, half=1), "b8": Transfer(1), "b16": Transfer(2)}
STORES |= {"d16_hi_b8": Transfer(1, half=1), "d16_hi_b16": Transfer(2, half=1)}

# Names after "ds_read_" (gfx9) and "ds_load_", "ds_write_" and "ds_store_".
DS_LOADS = {name: Transfer(nbytes) for name, nbytes in _NEW.items()}
DS_LOADS |= {"u8": Transfer(1), "i8": Transfer(1, True), "u16": Transfer(2), "i16": Transfer(2, True)}
DS_LOADS |= _halves({"u8": Transfer(1), "i8": Transfer(1, True), "u16": Transfer(2)}, "{0}_{1}")
DS_STORES = {name: Transfer(nbytes) for name, nbytes in _NEW.items()}
DS_STORES |= {
    "b8": Transfer(1),
    "b16": Transfer(2),
    "b8_d16_hi": Transfer(1, half=1),
    "b16_d16_hi": Transfer(2, half=1),
}


def fetch(space: Space, wave: Wave, addresses: Any, kind: Transfer) -> Words:
    """(n,) addresses → (dwords, n), extended to 32 bits (to 16 bits for one half) if smaller."""
    if kind.nbytes >= 4:
        return space.load(wave, addresses, kind.dwords)
    return extend(space.load_small(wave, addresses, kind.nbytes), kind)


def extend(words: Words, kind: Transfer) -> Words:
    """Zero-extended bytes or shorts (n,) → (1, n), sign-extended if the kind says so."""
    if kind.signed:
        words = words.astype(f"i{kind.nbytes}").astype(np.int32).view(np.uint32)
    return words[None]


def put(space: Space, wave: Wave, addresses: Any, data: Words, kind: Transfer) -> None:
    """Store (dwords, n) at (n,) addresses."""
    if kind.nbytes >= 4:
        space.store(wave, addresses, data)
    else:
        space.store_small(wave, addresses, data[0], kind.nbytes)


def writer(row: int, kind: Transfer) -> Callable[[Wave, Words], None]:
    """Return a writer of (dwords, active lanes) to the active lanes of the registers from ``row`` on."""
    rows, half = slice(row, row + kind.dwords), kind.half
    if half is None:

        def write(wave: Wave, data: Words) -> None:
            if wave.full:
                wave.v[rows] = data
            else:
                wave.v[rows, wave.mask] = data

        return write

    def write_half(wave: Wave, data: Words) -> None:
        wave.u[row].view(np.uint16)[half::2][wave.mask] = data[0].astype(np.uint16)

    return write_half


def reader(row: int, kind: Transfer) -> Callable[[Wave], Words]:
    """Return a reader of (dwords, active lanes) of the registers from ``row`` on; may return a view of them."""
    rows, high = slice(row, row + kind.dwords), kind.half == 1

    def read(wave: Wave) -> Words:
        data = wave.v[rows] if wave.full else wave.v[rows, wave.mask]
        return data >> np.uint32(16) if high else data

    return read


def lanes_of(wave: Wave, row: int) -> Words:
    """A register's active lanes."""
    return wave.u[row] if wave.full else wave.u[row][wave.mask]
