"""The check ``uninitialised``: no address, branch or stored value may depend on a register that was never set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.checks.effects import Effects
from kernelwright.simulator.checks.state import Around, WaveChecks, vector_name
from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.instructions.semantics import find
from kernelwright.simulator.instructions.vector.operands import operand_at
from kernelwright.simulator.instructions.vector.packed.halves import selection
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave

_MOVES = ("v_mov_b", "v_accvgpr", "v_writelane")
_LOW_FROM_LOW = ("v_mad_u64_u32", "v_mad_i64_i32", "v_mad_co_", "v_lshl_add_u64", "v_lshlrev_b64", "v_add_nc_u64")


def require_defined(instruction: Instruction, usage: Effects) -> Around:
    """Checks around one step: it may read only set registers, or its results become as unset as its sources."""
    entry = find(instruction.parts[0].name if instruction.parts else instruction.name)
    if entry is not None and entry.kind == "vector":
        return _passing_on(instruction, usage)
    if instruction.name.startswith("s_mov_b"):
        return _scalar_move(usage)
    return _strict(instruction, usage)


def _strict(instruction: Instruction, usage: Effects) -> Around:
    """Every register that is read must be set; results are set. Scratch may store and load unset values."""
    scratch = "SCRATCH" in instruction.encoding
    rows = [row for row in usage.vector_reads if not (scratch and row in usage.data)]
    scalars, results, data = usage.scalar_reads, usage.scalar_writes, list(usage.data)
    writes = list(usage.vector_writes)

    def before(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        if rows:
            known = state.known[rows]
            if not known.all() and not known[:, wave.mask].all():
                unknown = ~known & wave.mask
                row = int(unknown.any(axis=1).argmax())
                lane = int(unknown[row].argmax())
                raise Trap(f"uses {vector_name(rows[row])}, which depends on nothing that was ever set, in lane {lane}")
        _need_scalars(state, scalars)
        if scratch and data:
            state.stored = state.known[data]

    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        if scratch and state.loaded is not None and writes:
            np.copyto(state.known[writes[0] : writes[-1] + 1], state.loaded, where=wave.mask)
            state.loaded = None
        elif writes:
            state.known[writes] |= wave.mask
        for number in results:
            state.scalars[number] = True

    return before, after


def _need_scalars(state: WaveChecks, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        if not state.scalars[number]:
            raise Trap(f"uses s{number}, which depends on nothing that was ever set")


def _passing_on(instruction: Instruction, usage: Effects) -> Around:
    """Results of vector arithmetic are as unset as their sources, lane by lane; results in scalar registers as a whole.

    The low half of a 64-bit sum, product or shift to the left does not depend on high halves, and compilers leave
    those unset.
    """
    rows, scalars = list(usage.vector_reads), usage.scalar_reads
    move = instruction.name.startswith(_MOVES)
    high = {operand.index + 1 for operand in instruction.operands.values() if operand.count == 2}
    low = [row for row in rows if row not in high] if instruction.name.startswith(_LOW_FROM_LOW) else rows
    first_lane, any_lane = (instruction.name.startswith(name) for name in ("v_readfirstlane", "v_readlane"))
    writes, results = usage.vector_writes, usage.scalar_writes
    halves = _halves(instruction)

    def before(wave: Wave) -> None:
        if not move:
            _need_scalars(wave.checks, scalars)

    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        known: NDArray[np.bool_] = np.all(state.known[rows], axis=0)
        if move and not all(state.scalars[number] for number in scalars):
            known = ~wave.mask
        for number in results:
            lanes = known[wave.mask] if wave.exec else known
            state.scalars[number] = bool(known.any() if any_lane else lanes[0] if first_lane else lanes.all())
        for position, row in enumerate(writes):
            if halves is not None:
                chosen = np.all(state.known[halves[position]], axis=0)
            else:
                chosen = known if position or low is rows else np.all(state.known[low], axis=0)
            np.copyto(state.known[row], chosen, where=wave.mask)

    return before, after


def _halves(instruction: Instruction) -> tuple[list[int], list[int]] | None:
    """Registers read by the low and the high result of two fp32 operations; None for other instructions.

    Compilers read an operand of both from one half of a pair whose other half is unset.
    """
    if not (instruction.name.startswith("v_pk_") and instruction.name.endswith("_f32")):
        return None
    read: tuple[list[int], list[int]] = ([], [])
    for position in range(sum(name.startswith("src") for name in instruction.operands)):
        operand = operand_at(instruction, position)
        if operand.file in (File.VGPR, File.AGPR):
            for rows, half in zip(read, selection(instruction, position), strict=True):
                rows.append(row_of(operand) + half)
    return read


def _scalar_move(usage: Effects) -> Around:
    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        known = all(state.scalars[number] for number in usage.scalar_reads)
        for number in usage.scalar_writes:
            state.scalars[number] = known

    return None, after
