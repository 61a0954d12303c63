"""Instructions in which lanes differ: selection by lane masks, lane counts, moves between lanes and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.instructions.vector.lanewise import Op, lanewise, vector
from kernelwright.simulator.instructions.vector.masks import lane_mask, mask_source
from kernelwright.simulator.instructions.vector.operands import Source, modifiers, operand_at, registers, sources
from kernelwright.simulator.instructions.vector.results import destination, direct, vgpr
from kernelwright.simulator.machine.operands import row_of, scalar_word
from kernelwright.simulator.machine.registers import VGPRS
from kernelwright.simulator.machine.wave import Wave


def _lower_lanes(first: int) -> Any:
    """For each lane, the bits of the lanes below it, within the 32 lanes from ``first``."""
    bits = [((1 << lane) - 1) >> first & 0xFFFFFFFF for lane in range(64)]
    return np.array(bits, np.uint32)


def _count_below(first: int) -> Callable[[Any, Any], Any]:
    below = _lower_lanes(first)
    return lambda mask, start: np.bitwise_count(mask & below[: len(mask)]) + start


lanewise(
    {
        "v_mbcnt_lo_u32_b32": Op(_count_below(0), "u32", ("u32", "u32")),
        "v_mbcnt_hi_u32_b32": Op(_count_below(32), "u32", ("u32", "u32")),
    }
)


@vector("v_cndmask_b32", "v_cndmask_b16")
def build_cndmask(instruction: Instruction, target: Target) -> Step:
    """Lanes of the mask (``src2``, or VCC) take the second source, the others the first."""
    signed = any(any(modifiers(instruction, position)) for position in range(2))
    kind = ("f" if signed else "u") + instruction.name[-2:]
    inputs = sources(instruction, target, (kind, kind))
    mask = mask_source(instruction.operands.get("src2"), target)
    if instruction.get("clmp") or instruction.get("omod"):
        raise Unmodelled(f"{instruction.name}: output modifier or clamp")
    out = direct(instruction, kind)
    if out is None or signed:
        return _select(inputs, mask, destination(instruction, target, kind))
    row = row_of(instruction.operands["vdst"])
    same = [_is_row(operand_at(instruction, position), row, instruction) for position in range(2)]
    return _select_in_place(inputs, same, mask, out)


def _is_row(operand: Operand, row: int, instruction: Instruction) -> bool:
    return operand.file in (File.VGPR, File.AGPR) and row_of(operand) == row and "SDWA" not in instruction.encoding


def _select(inputs: list[Source], mask: Callable[[Wave], int], write: Callable[[Wave, Any], None]) -> Step:
    first, second = inputs
    return lambda wave: write(wave, np.where(lane_mask(mask(wave), wave.lanes), second(wave), first(wave)))


def _select_in_place(
    inputs: list[Source], same: list[bool], mask: Callable[[Wave], int], out: Callable[[Wave], Any]
) -> Step:
    """Two masked writes to different lanes, or none for a source that is the destination itself."""
    first, second = inputs
    keeps_first, keeps_second = same

    def step(wave: Wave) -> None:
        bits, active = mask(wave), wave.exec
        result = out(wave)
        if not keeps_first:
            other = active & ~bits
            values = first(wave)
            if other:
                np.putmask(result, lane_mask(other, wave.lanes), values)
        if not keeps_second and bits & active:
            np.putmask(result, lane_mask(bits & active, wave.lanes), second(wave))

    return step


def _scalar_result(instruction: Instruction) -> int:
    """SGPR number of a result that some encodings list as a VGPR."""
    return instruction.operands["vdst"].index


@semantics("v_readfirstlane_b32", kind="vector")
def build_readfirstlane(instruction: Instruction, target: Target) -> Step:
    """Read the lowest active lane, or lane 0 if there is none."""
    operand, index = operand_at(instruction, 0), _scalar_result(instruction)
    if operand.file not in (File.VGPR, File.AGPR):
        read = scalar_word(operand)
        return lambda wave: wave.write_scalar(index, read(wave))
    row = row_of(operand)

    def step(wave: Wave) -> None:
        active = wave.exec
        lane = (active & -active).bit_length() - 1 if active else 0
        wave.write_scalar(index, int(wave.u[row][lane]))

    return step


@semantics("v_readlane_b32", kind="vector")
def build_readlane(instruction: Instruction, target: Target) -> Step:
    """Read one lane, active or not."""
    row, index = row_of(vgpr(operand_at(instruction, 0))), _scalar_result(instruction)
    lane, last = scalar_word(operand_at(instruction, 1)), target.lanes - 1
    return lambda wave: wave.write_scalar(index, int(wave.u[row][lane(wave) & last]))


@semantics("v_writelane_b32", kind="vector")
def build_writelane(instruction: Instruction, target: Target) -> Step:
    """Write one lane, active or not."""
    row = row_of(vgpr(instruction.operands["vdst"]))
    value, lane = (scalar_word(operand_at(instruction, position)) for position in range(2))
    last = target.lanes - 1

    def step(wave: Wave) -> None:
        wave.u[row][lane(wave) & last] = value(wave)

    return step


def _accumulator(operand: Operand) -> int:
    """Row of an operand that is an AGPR whatever the decoder says."""
    return operand.index + VGPRS


@semantics("v_accvgpr_read", "v_accvgpr_write", "v_accvgpr_mov_b32", kind="vector")
def build_accumulator_move(instruction: Instruction, target: Target) -> Step:
    """Moves from and to the accumulation registers."""
    operand, result = operand_at(instruction, 0), instruction.operands["vdst"]
    name = instruction.name
    row = vgpr(result).index if name == "v_accvgpr_read" else _accumulator(vgpr(result))
    if name != "v_accvgpr_write" or operand.file is File.AGPR:
        read = registers(_accumulator(vgpr(operand)), "u32", target.lanes)
    else:
        (read,) = sources(instruction, target, ("u32",))

    def step(wave: Wave) -> None:
        if wave.full:
            wave.u[row][...] = read(wave)
        else:
            np.putmask(wave.u[row], wave.mask, read(wave))

    return step
