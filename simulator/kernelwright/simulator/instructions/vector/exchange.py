"""Exchanges: between lanes (v_permlane…) and between two registers (v_swap), and no-operation instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.instructions.vector.operands import operand_at, registers
from kernelwright.simulator.instructions.vector.results import vgpr, write_half, write_row
from kernelwright.simulator.machine.operands import row_of, scalar_word
from kernelwright.simulator.machine.registers import to_mask
from kernelwright.simulator.machine.wave import Wave

_ROW = 16


def _permute(instruction: Instruction, target: Target, index: Callable[[Wave], NDArray[np.int64]]) -> Step:
    """Each active lane takes the word of lane ``index``. An inactive lane gives 0, or its word on request."""
    row = row_of(vgpr(operand_at(instruction, 0)))
    write = write_row(row_of(vgpr(instruction.operands["vdst"])), "u32")
    fetch_inactive, bound = instruction.get("opsel") & 1, instruction.get("opsel") >> 1 & 1
    if any(instruction.get(field) for field in ("neg", "abs", "clmp", "omod")):
        raise Unmodelled(f"{instruction.name}: modifiers")

    def step(wave: Wave) -> None:
        chosen = index(wave)
        taken = wave.u[row][chosen]
        if not wave.full and not fetch_inactive:
            active = to_mask(wave.exec, wave.lanes)[chosen]
            if np.count_nonzero(wave.mask & ~active):
                if not bound:
                    raise Unmodelled(f"{instruction.name} from an inactive lane without bound_ctrl")
                taken = np.where(active, taken, np.uint32(0))
        write(wave, taken)

    return step


@semantics("v_permlane16_b32", "v_permlanex16_b32", kind="vector")
def build_permlane(instruction: Instruction, target: Target) -> Step:
    """Select a lane in the row of 16, or in the other row of the pair, by 16 4-bit selectors in two scalars."""
    words = [scalar_word(operand_at(instruction, position)) for position in (1, 2)]
    base = np.arange(target.lanes) & ~(_ROW - 1)
    if "x16" in instruction.name:
        base ^= _ROW

    def index(wave: Wave) -> NDArray[np.int64]:
        bits = words[0](wave) | words[1](wave) << 32
        row = [bits >> 4 * lane & 15 for lane in range(_ROW)]
        return base + np.tile(np.array(row, np.int64), wave.lanes // _ROW)

    return _permute(instruction, target, index)


@semantics("v_permlane16_var_b32", "v_permlanex16_var_b32", kind="vector")
def build_permlane_variable(instruction: Instruction, target: Target) -> Step:
    """As v_permlane16, with a selector in each lane of the second source."""
    selectors = registers(row_of(vgpr(operand_at(instruction, 1))), "u32", target.lanes)
    base = np.arange(target.lanes) & ~(_ROW - 1)
    if "x16" in instruction.name:
        base ^= _ROW
    return _permute(instruction, target, lambda wave: base + (selectors(wave) & np.uint32(_ROW - 1)).astype(np.int64))


@semantics("v_permlane16_swap_b32", "v_permlane32_swap_b32", kind="vector")
def build_permlane_swap(instruction: Instruction, target: Target) -> Step:
    """Swap odd rows (or the upper half) of the destination with even rows (the lower half) of the source."""
    mine, other = (row_of(vgpr(operand)) for operand in (instruction.operands["vdst"], operand_at(instruction, 0)))
    distance = int(instruction.name[10:12])
    upper = np.flatnonzero(np.arange(target.lanes) & distance)

    def step(wave: Wave) -> None:
        if not wave.full:
            raise Unmodelled(f"{instruction.name} with inactive lanes")
        held = wave.u[mine][upper]
        wave.u[mine][upper] = wave.u[other][upper - distance]
        wave.u[other][upper - distance] = held

    return step


@semantics("v_swap_b32", kind="vector")
def build_swap(instruction: Instruction, target: Target) -> Step:
    """Swap two registers, in the active lanes."""
    mine, other = (row_of(vgpr(operand)) for operand in (instruction.operands["vdst"], operand_at(instruction, 0)))
    write_mine, write_other = write_row(mine, "u32"), write_row(other, "u32")

    def step(wave: Wave) -> None:
        held = wave.u[mine].copy()
        write_mine(wave, wave.u[other])
        write_other(wave, held)

    return step


@semantics("v_swap_b16", kind="vector")
def build_swap_halves(instruction: Instruction, target: Target) -> Step:
    """Swap two halves of registers, in the active lanes."""
    operands = vgpr(instruction.operands["vdst"]), vgpr(operand_at(instruction, 0))
    rows = [(row_of(operand), int(operand.high)) for operand in operands]
    (write_mine, write_other) = (write_half(row, half) for row, half in rows)
    (mine, other) = (registers(row, "u16", target.lanes, high=bool(half)) for row, half in rows)

    def step(wave: Wave) -> None:
        held = mine(wave).copy()
        write_mine(wave, other(wave).copy())
        write_other(wave, held)

    return step


@semantics("v_permlane64_b32", kind="vector")
def build_permlane64(instruction: Instruction, target: Target) -> Step:
    """Swap the halves of a wave of 64; no effect on the simulated waves of 32."""
    if target.lanes != 32 or operand_at(instruction, 0).file is not File.VGPR:
        raise Unmodelled(f"{instruction.name} on {target.name}")
    return _nothing


def _nothing(wave: Wave) -> None:
    """No effect."""


@semantics("v_nop", kind="other")
def build_nop(instruction: Instruction, target: Target) -> Step:
    """Do nothing."""
    return _nothing
