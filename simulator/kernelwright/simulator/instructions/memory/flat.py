"""Global and flat loads and stores: 64-bit addresses per lane, or a scalar base with 32-bit offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.memory.lds import lds_place
from kernelwright.simulator.instructions.memory.transfer import (
    LOADS,
    STORES,
    Space,
    fetch,
    lanes_of,
    put,
    reader,
    writer,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.memory import PRIVATE_APERTURE, SHARED_APERTURE, Addresses
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.scratch import Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import Update, Words

_MASK = (1 << 64) - 1
_TO_LDS = {name: LOADS[name] for name in ("ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx3", "dwordx4")}
_HIGH = np.uint64(32)


def signed_offset(instruction: Instruction, target: Target) -> int:
    """The instruction's own offset: 13 bits (12 without sign in flat on gfx9), 24 on gfx12."""
    if "ioffset" in instruction.fields:
        raw, width = instruction.get("ioffset"), 24
    else:
        raw, width = instruction.get("offset"), 13
    return raw - (1 << width) if raw >> (width - 1) else raw


def scalar_base(instruction: Instruction, target: Target) -> int | None:
    """Scalar operand number of ``saddr``; None if the instruction says ``off``."""
    index = instruction.operands["saddr"].index
    return None if index in (127, target.null) else index


def vector_address(instruction: Instruction) -> int:
    """First row of the address registers."""
    operands = instruction.operands
    return (operands["vaddr"] if "vaddr" in operands else operands["addr"]).index


def data_row(instruction: Instruction) -> int:
    """First row of the data to store."""
    operands = instruction.operands
    return row_of(operands["vsrc"] if "vsrc" in operands else operands["data"])


def addresses_of(instruction: Instruction, target: Target) -> Callable[[Wave], Addresses]:
    """Addresses of the active lanes (ISA guides, "Flat address calculation")."""
    row, offset, base = (
        vector_address(instruction),
        signed_offset(instruction, target),
        scalar_base(instruction, target),
    )
    if base is None or instruction.name.startswith("flat_"):
        constant = np.uint64(offset & _MASK)

        def per_lane(wave: Wave) -> Addresses:
            addresses: Addresses = lanes_of(wave, row + 1).astype(np.uint64) << _HIGH
            addresses |= lanes_of(wave, row)
            if offset:
                addresses += constant
            return addresses

        return per_lane

    def from_base(wave: Wave) -> Addresses:
        addresses: Addresses = lanes_of(wave, row).astype(np.uint64)
        addresses += np.uint64(wave.read_scalar64(base) + offset & _MASK)
        return addresses

    return from_base


class Flat:
    """Memory as seen by flat instructions: the apertures of LDS and scratch, and global memory elsewhere."""

    def load(self, wave: Wave, addresses: Addresses, dwords: int) -> Words:
        """(n,) addresses → (dwords, n)."""
        return self._each(wave, addresses, dwords, lambda space, at: space.load(wave, at, dwords))

    def load_small(self, wave: Wave, addresses: Addresses, nbytes: int) -> Words:
        """(n,) addresses → (n,), zero-extended."""
        words: Words = self._each(wave, addresses, 1, lambda space, at: space.load_small(wave, at, nbytes)[None])[0]
        return words

    def store(self, wave: Wave, addresses: Addresses, data: Words) -> None:
        """Store (dwords, n)."""
        for space, at, lanes in self._split(wave, addresses):
            space.store(wave, at, data[:, lanes])

    def store_small(self, wave: Wave, addresses: Addresses, data: Words, nbytes: int) -> None:
        """Store the low one or two bytes of (n,)."""
        for space, at, lanes in self._split(wave, addresses):
            space.store_small(wave, at, data[lanes], nbytes)

    def atomic(self, wave: Wave, addresses: Addresses, dwords: int, update: Update) -> Words:
        """Read, modify and write (n,) addresses; the old contents as (dwords, n)."""
        previous = np.empty((dwords, len(addresses)), np.uint32)
        for space, at, lanes in self._split(wave, addresses):
            previous[:, lanes] = space.atomic(wave, at, dwords, _renumbered(update, np.flatnonzero(lanes)))
        return previous

    def _each(self, wave: Wave, addresses: Addresses, rows: int, load: Callable[[Space, Any], Words]) -> Words:
        words = np.empty((rows, len(addresses)), np.uint32)
        for space, at, lanes in self._split(wave, addresses):
            words[:, lanes] = load(space, at)
        return words

    @staticmethod
    def _split(wave: Wave, addresses: Addresses) -> list[tuple[Space, Any, Any]]:
        """Space, addresses in it, and the lanes that they belong to."""
        high = addresses >> _HIGH
        lds, private = high == SHARED_APERTURE, high == PRIVATE_APERTURE
        low = (addresses & np.uint64(0xFFFFFFFF)).view(np.int64)
        parts: list[tuple[Space, Any, Any]] = [(wave.lds, low, lds), (wave.memory, addresses, ~(lds | private))]
        if private.any():
            if wave.scratch is None:
                raise Trap("a flat access to scratch, of which the kernel has none", int(addresses[private.argmax()]))
            parts.append((_Private(wave.scratch, wave.lane_ids[wave.mask][private]), low, private))
        return [(space, at[lanes], lanes) for space, at, lanes in parts if lanes.any()]


class _Private:
    """Scratch of some lanes, as a space."""

    def __init__(self, scratch: Scratch, lanes: NDArray[np.int64]) -> None:
        self._scratch, self._lanes = scratch, lanes

    def load(self, wave: Wave, addresses: NDArray[np.int64], dwords: int) -> Words:
        raw = self._scratch.load(wave, self._lanes, addresses, 4 * dwords)
        return np.ascontiguousarray(raw).view(np.uint32).T

    def load_small(self, wave: Wave, addresses: NDArray[np.int64], nbytes: int) -> Words:
        raw = np.ascontiguousarray(self._scratch.load(wave, self._lanes, addresses, nbytes))
        return raw.view(f"u{nbytes}")[:, 0].astype(np.uint32)

    def store(self, wave: Wave, addresses: NDArray[np.int64], data: Words) -> None:
        self._scratch.store(wave, self._lanes, addresses, np.ascontiguousarray(data.T).view(np.uint8))

    def store_small(self, wave: Wave, addresses: NDArray[np.int64], data: Words, nbytes: int) -> None:
        raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1, 4)[:, :nbytes]
        self._scratch.store(wave, self._lanes, addresses, raw)

    def atomic(self, wave: Wave, addresses: NDArray[np.int64], dwords: int, update: Update) -> Words:
        raise Trap("an atomic on scratch", int(addresses[0]))


def _renumbered(update: Update, lanes: NDArray[np.int64]) -> Update:
    """The update, given indices into ``lanes`` instead of lanes."""
    return lambda old, which: update(old, lanes[which])


def space_of(instruction: Instruction) -> Callable[[Wave], Space]:
    """The space that the instruction's addresses point into."""
    if instruction.name.startswith("flat_"):
        flat = Flat()
        return lambda wave: flat
    return lambda wave: wave.memory


@semantics(*(f"{space}_load_{name}" for space in ("global", "flat") for name in LOADS), kind="global")
def load(instruction: Instruction, target: Target) -> Step:
    """Load to registers."""
    kind = LOADS[instruction.name.split("_load_")[1]]
    where, space = addresses_of(instruction, target), space_of(instruction)
    write = writer(row_of(instruction.operands["vdst"]), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            write(wave, fetch(space(wave), wave, where(wave), kind))

    return step


@semantics(*(f"{space}_store_{name}" for space in ("global", "flat") for name in STORES), kind="global")
def store(instruction: Instruction, target: Target) -> Step:
    """Store from registers."""
    kind = STORES[instruction.name.split("_store_")[1]]
    where, space = addresses_of(instruction, target), space_of(instruction)
    read = reader(data_row(instruction), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            put(space(wave), wave, where(wave), read(wave), kind)

    return step


@semantics(*(f"global_load_lds_{name}" for name in _TO_LDS), kind="global")
def load_to_lds(instruction: Instruction, target: Target) -> Step:
    """Load to LDS, as buffers do (gfx9)."""
    kind = _TO_LDS[instruction.name.removeprefix("global_load_lds_")]
    if not target.cdna or (kind.dwords > 1 and target.instructions != "gfx950"):
        raise Unmodelled(f"{instruction.name} on {target.name}")
    where, place = addresses_of(instruction, target), lds_place(signed_offset(instruction, target), target, kind.dwords)

    def step(wave: Wave) -> None:
        if wave.exec:
            wave.lds.store(wave, place(wave), fetch(wave.memory, wave, where(wave), kind))

    return step


@semantics("global_load_tr_b128", kind="global")
def load_transposed(instruction: Instruction, target: Target) -> Step:
    """Load and transpose: eight lanes each load a row of eight 16-bit elements, and each gets a column (gfx12, wave32).

    Together with row addresses this turns a 16x16 matrix (RDNA4 ISA guide, "Load transpose"); the permutation itself
    was measured on gfx1201 by others. The 8-bit form (``b64``) permutes differently and is not modelled.
    """
    where, kind = addresses_of(instruction, target), LOADS["b128"]
    first = row_of(instruction.operands["vdst"])

    def step(wave: Wave) -> None:
        if not wave.full:
            raise Trap(f"{instruction.name} needs all lanes active")
        words = wave.memory.load(wave, where(wave), kind.dwords)
        elements = np.ascontiguousarray(words.T).view(np.uint16).reshape(-1, 8, 8)
        wave.v[first : first + 4] = np.ascontiguousarray(elements.transpose(0, 2, 1)).view(np.uint32).reshape(-1, 4).T

    return step
