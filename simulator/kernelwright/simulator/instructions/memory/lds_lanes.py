"""DS instructions that move data between lanes: permute, bpermute and swizzle touch no LDS; transposing reads do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.memory.lds import one_offset, place
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave

_TRANSPOSING = {"ds_read_b64_tr_b16": np.uint16, "ds_read_b64_tr_b8": np.uint8}


def _write(wave: Wave, row: int, values: NDArray[np.uint32]) -> None:
    np.copyto(wave.u[row], values, where=wave.mask)


@semantics("ds_bpermute_b32", "ds_bpermute_fi_b32", kind="lds")
def bpermute(instruction: Instruction, target: Target) -> Step:
    """Each lane reads the lane that its address / 4 names; inactive lanes give 0, with ``fi`` their register."""
    address, data, result = (row_of(instruction.operands[key]) for key in ("addr", "data0", "vdst"))
    offset, every = one_offset(instruction), "_fi_" in instruction.name

    def step(wave: Wave) -> None:
        source = (wave.u[address] + offset >> np.uint32(2)) & np.uint32(wave.lanes - 1)
        values = wave.u[data] if every or wave.full else np.where(wave.mask, wave.u[data], np.uint32(0))
        _write(wave, result, values[source])

    return step


@semantics("ds_permute_b32", kind="lds")
def permute(instruction: Instruction, target: Target) -> Step:
    """Each active lane writes to the lane that its address / 4 names; the highest wins, the others get 0."""
    address, data, result = (row_of(instruction.operands[key]) for key in ("addr", "data0", "vdst"))
    offset = one_offset(instruction)

    def step(wave: Wave) -> None:
        goal = (wave.u[address] + offset >> np.uint32(2)) & np.uint32(wave.lanes - 1)
        values = np.zeros(wave.lanes, np.uint32)
        values[goal[wave.mask]] = wave.u[data][wave.mask]
        _write(wave, result, values)

    return step


@semantics("ds_swizzle_b32", kind="lds")
def swizzle(instruction: Instruction, target: Target) -> Step:
    """A fixed pattern within 32 lanes; inactive lanes give 0."""
    source = swizzled(int(one_offset(instruction)), target.lanes)
    data, result = row_of(instruction.operands["addr"]), row_of(instruction.operands["vdst"])

    def step(wave: Wave) -> None:
        values = wave.u[data] if wave.full else np.where(wave.mask, wave.u[data], np.uint32(0))
        _write(wave, result, values[source])

    return step


def swizzled(pattern: int, lanes: int) -> NDArray[np.int64]:
    """The lane that each lane reads (ISA guides, "ds_swizzle_b32"). Unmodelled for the FFT patterns."""
    lane = np.arange(lanes)
    if not pattern >> 15:  # and, or, xor masks
        return (lane & 32) | (lane & pattern & 31 | pattern >> 5 & 31) ^ pattern >> 10 & 31
    if pattern >= 0xE000:
        raise Unmodelled(f"ds_swizzle_b32 with the FFT pattern {pattern:#x}")
    if pattern >= 0xC000:  # rotate
        mask, turn = pattern & 31, (pattern >> 5 & 31) * (-1 if pattern >> 10 & 1 else 1)
        return (lane & 32) | (lane & mask) | (lane + turn & ~mask & 31)
    return (lane & ~3) | pattern >> 2 * (lane & 3) & 3  # within four


@semantics(*_TRANSPOSING, kind="lds")
def read_transposed(instruction: Instruction, target: Target) -> Step:
    """Read and transpose: sixteen lanes read rows of 16 elements, and each gets a column.

    With E elements in 64 bits, row n lies in lanes 16 / E * n and following; lane l gets element l of rows 0 to E - 1
    (CK Tile, ``amd_transpose_load_encoding.hpp``: 4 x 16 and 8 x 16 before the transposition).
    """
    if target.instructions != "gfx950":
        raise Unmodelled(f"{instruction.name} on {target.name}")
    dtype = _TRANSPOSING[instruction.name]
    count = 8 // np.dtype(dtype).itemsize
    lane, row = np.arange(64)[:, None], np.arange(count)
    source = (lane & ~15) + (lane & 15) // count + 16 // count * row
    index = source * count + lane % count
    address, offset = instruction.operands["addr"].index, one_offset(instruction)
    first = row_of(instruction.operands["vdst"])

    def step(wave: Wave) -> None:
        if not wave.full:
            raise Trap(f"{instruction.name} needs all lanes active")
        words = wave.lds.load(wave, place(wave, address, offset), 2)
        elements = np.ascontiguousarray(words.T).view(dtype)
        wave.v[first : first + 2] = elements.take(index).view(np.uint32).T

    return step
