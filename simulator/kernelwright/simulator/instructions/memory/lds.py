"""DS loads and stores, one or two addresses per lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.memory.transfer import (
    DS_LOADS,
    DS_STORES,
    Transfer,
    fetch,
    lanes_of,
    put,
    reader,
    writer,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave

_LOADS = {f"ds_{verb}_{name}": kind for verb in ("read", "load") for name, kind in DS_LOADS.items()}
_STORES = {f"ds_{verb}_{name}": kind for verb in ("write", "store") for name, kind in DS_STORES.items()}
_PAIR_NAMES = {
    f"ds_{new if later else old}{(later or '2')}{stride}_{width}": (nbytes, scale)
    for old, new in (("read", "load"), ("write", "store"))
    for later in ("", "_2addr")
    for stride, scale in (("", 1), ("_stride64" if later else "st64", 64))
    for width, nbytes in (("b32", 4), ("b64", 8))
}
_PAIR_LOADS = {name: value for name, value in _PAIR_NAMES.items() if "read" in name or "load" in name}
_PAIR_STORES = {name: value for name, value in _PAIR_NAMES.items() if name not in _PAIR_LOADS}


def place(wave: Wave, row: int, offset: np.uint32) -> NDArray[np.int64]:
    """Addresses of the active lanes: 32-bit sums, which wrap (LLVM folds offsets of any base into them since gfx7)."""
    return (lanes_of(wave, row) + offset).astype(np.int64)


def one_offset(instruction: Instruction) -> np.uint32:
    """The 16-bit offset of an instruction with one address. Unmodelled for GDS."""
    if instruction.get("gds"):
        raise Unmodelled(f"{instruction.name}: global data share")
    return np.uint32(instruction.get("offset0") | instruction.get("offset1") << 8)


def lds_place(offset: int, target: Target, dwords: int) -> Callable[[Wave], NDArray[np.int64]]:
    """LDS addresses of the active lanes' data in loads that bypass the registers."""
    size, m0 = 4 * dwords, target.m0

    def places(wave: Wave) -> NDArray[np.int64]:
        start = wave.s[m0]
        if start >> 18 or start & 3:
            raise Trap(f"M0 is no LDS address of a direct load: {start:#x}", start)
        lanes = wave.lane_ids if wave.full else wave.lane_ids[wave.mask]
        return lanes * size + (start + offset)

    return places


@semantics(*_LOADS, kind="lds")
def load(instruction: Instruction, target: Target) -> Step:
    """Load from one address per lane."""
    kind, offset = _LOADS[instruction.name], one_offset(instruction)
    address = instruction.operands["addr"].index
    write = writer(row_of(instruction.operands["vdst"]), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            addresses = place(wave, address, offset)
            write(wave, fetch(wave.lds, wave, addresses, kind))

    return step


@semantics(*_STORES, kind="lds")
def store(instruction: Instruction, target: Target) -> Step:
    """Store to one address per lane."""
    kind, offset = _STORES[instruction.name], one_offset(instruction)
    address = instruction.operands["addr"].index
    read = reader(row_of(instruction.operands["data0"]), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            addresses = place(wave, address, offset)
            put(wave.lds, wave, addresses, read(wave), kind)

    return step


@semantics(*_PAIR_LOADS, kind="lds")
def load_pair(instruction: Instruction, target: Target) -> Step:
    """Load from two addresses per lane; offsets in units of the element, times 64 for st64."""
    nbytes, _ = _PAIR_LOADS[instruction.name]
    first, second = pair_offsets(instruction)
    kind, address, row = Transfer(nbytes), instruction.operands["addr"].index, row_of(instruction.operands["vdst"])
    write_first, write_second = writer(row, kind), writer(row + kind.dwords, kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            data = wave.lds.load(wave, place(wave, address, first), kind.dwords)
            write_second(wave, wave.lds.load(wave, place(wave, address, second), kind.dwords))
            write_first(wave, data)

    return step


@semantics(*_PAIR_STORES, kind="lds")
def store_pair(instruction: Instruction, target: Target) -> Step:
    """Store to two addresses per lane; if they are equal, the second one wins."""
    nbytes, _ = _PAIR_STORES[instruction.name]
    first, second = pair_offsets(instruction)
    kind, address = Transfer(nbytes), instruction.operands["addr"].index
    read_first = reader(row_of(instruction.operands["data0"]), kind)
    read_second = reader(row_of(instruction.operands["data1"]), kind)

    def step(wave: Wave) -> None:
        if wave.exec:
            wave.lds.store(wave, place(wave, address, first), read_first(wave))
            wave.lds.store(wave, place(wave, address, second), read_second(wave))

    return step


def pair_offsets(instruction: Instruction) -> tuple[np.uint32, np.uint32]:
    """The two offsets of an instruction with two addresses, in bytes. Unmodelled for GDS."""
    nbytes, scale = _PAIR_NAMES[instruction.name]
    unit = nbytes * scale
    one_offset(instruction)
    return np.uint32(instruction.get("offset0") * unit), np.uint32(instruction.get("offset1") * unit)
