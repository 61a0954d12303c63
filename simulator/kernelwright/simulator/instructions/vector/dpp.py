"""DPP: the first source of an instruction comes from other lanes.

Sources: CDNA3 ISA guide "DPP", RDNA3 ISA guide "DPP16", LLVM AMDGPUUsage "dpp_ctrl". A step gathers the source into a
spare register with the lanes that are active, then runs the instruction on that register with EXEC narrowed to the
lanes that it may write.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Builder, Step
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.registers import VGPRS, to_bits, to_mask
from kernelwright.simulator.machine.wave import Wave

_GATHERED = VGPRS  # as an AGPR number: the first spare row
_DPP8_FETCH = 234  # src0 of DPP8 that reads inactive lanes too; 233 does not
_BESIDE = ("dpp", "bc", "fi", "row_mask", "bank_mask")


def gather_lanes(control: int, lanes: int, cdna: bool) -> list[int | None]:
    """For each lane, the lane that it reads, or None if that would be outside."""
    return [_source_lane(control, lane, lanes, cdna) for lane in range(lanes)]


def _source_lane(control: int, lane: int, lanes: int, cdna: bool) -> int | None:
    row, column, amount = lane & ~15, lane & 15, control & 15
    family = control & ~15
    if control < 0x100:  # quad_perm
        return (lane & ~3) + (control >> 2 * (lane & 3) & 3)
    if family == 0x100 and amount:  # row_shl
        return lane + amount if column + amount < 16 else None
    if family == 0x110 and amount:  # row_shr
        return lane - amount if column >= amount else None
    if family == 0x120 and amount:  # row_ror
        return row + (column - amount) % 16
    if control == 0x140:  # row_mirror
        return row + 15 - column
    if control == 0x141:  # row_half_mirror
        return lane ^ 7
    if family == 0x150:  # row_newbcast, row_share
        return row + amount
    if family == 0x160 and not cdna:  # row_xmask
        return row + (column ^ amount)
    if cdna:
        return _across_rows(control, lane, lanes)
    raise Unmodelled(f"DPP control {control:#x}")


def _across_rows(control: int, lane: int, lanes: int) -> int | None:
    """CDNA's controls that cross rows of 16 lanes."""
    if control == 0x130:  # wave_shl
        return lane + 1 if lane + 1 < lanes else None
    if control == 0x134:  # wave_rol
        return (lane + 1) % lanes
    if control == 0x138:  # wave_shr
        return lane - 1 if lane else None
    if control == 0x13C:  # wave_ror
        return (lane - 1) % lanes
    if control == 0x142:  # row_bcast15: lane 15 of each row to the next row
        return (lane & ~15) - 1 if lane >= 16 else None
    if control == 0x143:  # row_bcast31: lane 31 to the upper half
        return 31 if lane >= 32 else None
    raise Unmodelled(f"DPP control {control:#x}")


def build_dpp(instruction: Instruction, target: Target, build: Builder) -> Step:
    """The step of an instruction in a DPP encoding, from the builder of its plain form."""
    eight = instruction.encoding.endswith("DPP8")
    if eight:
        instruction = _as_dpp16(instruction)
        lanes: list[int | None] = _eight(instruction, target.lanes)
    else:
        lanes = gather_lanes(instruction.get("dpp"), target.lanes, target.cdna)
    index = np.array([lane if source is None else source for lane, source in enumerate(lanes)])
    inside = sum(1 << lane for lane, source in enumerate(lanes) if source is not None)
    zero, inactive = bool(instruction.get("bc")), bool(instruction.get("fi"))
    writable, everywhere = _writable(instruction, target.lanes), (1 << target.lanes) - 1
    makes_mask = "sdst" in instruction.operands or instruction.name.startswith("v_cmp")
    if makes_mask and (writable != everywhere or not (zero or inside == everywhere)):
        raise Unmodelled(f"{instruction.name}: DPP that leaves lanes of a lane mask out")
    source = instruction.operands["vsrc0"]
    rows = [row_of(source) + part for part in range(source.count)]
    inner = build(_plain(instruction, source), target)
    spares = range(2 * VGPRS, 2 * VGPRS + source.count)

    def step(wave: Wave) -> None:
        before = wave.exec
        valid = inside if inactive or wave.full else inside & _moved(before, index, wave.lanes)
        if eight and before & ~valid:
            raise Unmodelled(f"{instruction.name}: DPP8 from an inactive lane")
        for row, spare in zip(rows, spares, strict=True):
            np.take(wave.u[row], index, out=wave.u[spare])
            if zero and valid != everywhere:
                wave.u[spare][~to_mask(valid, wave.lanes)] = 0
        allowed = before & writable & (valid if not zero else -1)
        if allowed == before:
            inner(wave)
            return
        wave.set_exec(allowed)
        try:
            inner(wave)
        finally:
            wave.set_exec(before)

    return step


def _eight(instruction: Instruction, lanes: int) -> list[int | None]:
    """For each lane, its chosen lane within its group of eight."""
    chosen = [instruction.get(f"lane_sel_{place}") for place in range(8)]
    return [(lane & ~7) + chosen[lane & 7] for lane in range(lanes)]


def _as_dpp16(instruction: Instruction) -> Instruction:
    """The instruction with the fields that DPP8 lacks: it writes all active lanes."""
    fetch = int(instruction.operands["src0"].index == _DPP8_FETCH)
    fields = {**instruction.fields, "bc": 1, "fi": fetch, "row_mask": 15, "bank_mask": 15}
    return replace(instruction, fields=fields)


def _moved(bits: int, index: NDArray[np.int64], lanes: int) -> int:
    return to_bits(to_mask(bits, lanes)[index])


def _writable(instruction: Instruction, lanes: int) -> int:
    """Lanes enabled by row_mask (rows of 16) and bank_mask (banks of 4 within each row)."""
    rows, banks = instruction.get("row_mask"), instruction.get("bank_mask")
    return sum(1 << lane for lane in range(lanes) if rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1)


def _plain(instruction: Instruction, source: Operand) -> Instruction:
    operands = dict(instruction.operands)
    del operands["vsrc0"]
    operands["src0"] = replace(source, file=File.AGPR, index=_GATHERED)
    beside = {key: value for key, value in instruction.fields.items() if key not in _BESIDE}
    fields = {key: value for key, value in beside.items() if not key.startswith("lane_sel")}
    encoding = instruction.encoding.removesuffix("_DPP16").removesuffix("_DPP8")
    return replace(instruction, encoding=encoding, operands=operands, fields=fields)
