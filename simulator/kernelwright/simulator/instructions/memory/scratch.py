"""Scratch loads and stores: offsets into the private memory of each lane, from a scalar, a vector register or both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.memory.flat import data_row, scalar_base, signed_offset, vector_address
from kernelwright.simulator.instructions.memory.transfer import (
    LOADS,
    STORES,
    Transfer,
    extend,
    lanes_of,
    reader,
    writer,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.scratch import Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import Words

_M32 = 0xFFFFFFFF


@semantics(*(f"scratch_load_{name}" for name in LOADS), kind="scratch")
def load(instruction: Instruction, target: Target) -> Step:
    """Load to registers; a common offset of all lanes reads whole rows."""
    kind = LOADS[instruction.name.removeprefix("scratch_load_")]
    uniform, row = _place(instruction, target)
    write = writer(row_of(instruction.operands["vdst"]), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            load_private(wave, uniform(wave), row, kind, write)

    return step


@semantics(*(f"scratch_store_{name}" for name in STORES), kind="scratch")
def store(instruction: Instruction, target: Target) -> Step:
    """Store from registers."""
    kind = STORES[instruction.name.removeprefix("scratch_store_")]
    uniform, row = _place(instruction, target)
    first = data_row(instruction)
    read = reader(first, kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            store_private(wave, uniform(wave), row, kind, first, read)

    return step


def load_private(
    wave: Wave, offset: int, row: int | None, kind: Transfer, write: Callable[[Wave, Words], None]
) -> None:
    """Load from ``offset``, to which register ``row`` is added in each lane."""
    scratch = _scratch(wave)
    if row is None and kind.nbytes >= 4 and not offset & 3:
        data = scratch.load_row(wave, offset, kind.dwords)
        write(wave, data if wave.full else data[:, wave.mask])
    else:
        write(wave, _load_lanes(wave, scratch, _offsets(wave, offset, row), kind))


def store_private(
    wave: Wave, offset: int, row: int | None, kind: Transfer, first: int, read: Callable[[Wave], Words]
) -> None:
    """Store the registers from ``first`` on, with the active lanes' data from ``read``."""
    scratch = _scratch(wave)
    if row is None and kind.nbytes >= 4 and not offset & 3:
        scratch.store_row(wave, offset, wave.v[first : first + kind.dwords])
    else:
        raw = np.ascontiguousarray(read(wave).T).view(np.uint8)[:, : kind.nbytes]
        scratch.store(wave, _lanes(wave), _offsets(wave, offset, row), raw)


def _place(instruction: Instruction, target: Target) -> tuple[Callable[[Wave], int], int | None]:
    """The part of the offset that all lanes share, and the row of the rest, or None (enabled by ``sve``)."""
    if target.instructions == "gfx90a":
        raise Unmodelled(f"{instruction.name} on gfx90a, whose scratch has no fixed place")
    base, offset = scalar_base(instruction, target), signed_offset(instruction, target)
    row = vector_address(instruction) if instruction.get("sve") else None
    if base is None:
        return lambda wave: offset, row
    return lambda wave: wave.read_scalar(base) + offset & _M32, row


def _scratch(wave: Wave) -> Scratch:
    if wave.scratch is None:
        raise Trap("an access to scratch, of which the kernel has none")
    return wave.scratch


def _lanes(wave: Wave) -> NDArray[np.int64]:
    return wave.lane_ids[wave.mask]


def _offsets(wave: Wave, offset: int, row: int | None) -> NDArray[np.int64]:
    if row is None:
        return np.full(len(_lanes(wave)), offset, np.int64)
    return (lanes_of(wave, row).astype(np.int64) + offset) & _M32


def _load_lanes(wave: Wave, scratch: Scratch, offsets: NDArray[np.int64], kind: Transfer) -> Words:
    raw = np.ascontiguousarray(scratch.load(wave, _lanes(wave), offsets, kind.nbytes))
    if kind.nbytes >= 4:
        return raw.view(np.uint32).T
    return extend(raw.view(f"u{kind.nbytes}")[:, 0].astype(np.uint32), kind)
