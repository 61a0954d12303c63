"""Destinations of vector instructions: output modifiers, clamping, halves and bytes, writing only active lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.vector.operands import registers
from kernelwright.simulator.instructions.vector.sdwa import deposit
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES, row_of
from kernelwright.simulator.machine.wave import Wave

Destination = Callable[[Wave, Any], None]
Finish = Callable[[Wave, Any], Any]

# CDNA's 16-bit instructions clear the other half of the register, except those that can write either half (LLVM,
# GCNSubtarget::zeroesHigh16BitsOfDest); RDNA's all keep it.
_KEEP_HALF = frozenset(
    (
        "v_mad_f16",
        "v_mad_u16",
        "v_mad_i16",
        "v_fma_f16",
        "v_div_fixup_f16",
        "v_bitop3_b16",
        "v_cvt_sr_bf16_f32",
        "v_cvt_sr_f16_f32",
        "v_cvt_pk_fp8_f32",
        "v_cvt_pk_bf8_f32",
        "v_ashr_pk_i8_i32",
        "v_ashr_pk_u8_i32",
    )
)
_FACTORS = {1: 2.0, 2: 4.0, 3: 0.5}
_WORDS = {"u32": "u", "i32": "i", "f32": "f"}


def direct(instruction: Instruction, kind: str) -> Callable[[Wave], Any] | None:
    """The register that receives the result unchanged, or None if the result must be processed first."""
    changed = instruction.get("clmp") or instruction.get("omod")
    if kind not in _WORDS or changed or instruction.get("dst_sel", 6) != 6:
        return None
    return registers(row_of(vgpr(instruction.operands["vdst"])), kind, 0)


def vgpr(operand: Operand) -> Operand:
    """The operand itself. Unmodelled if it is not in the vector registers."""
    if operand.file not in (File.VGPR, File.AGPR):
        raise Unmodelled(f"a vector result in {operand}")
    return operand


def destination(instruction: Instruction, target: Target, kind: str, *, clamped: bool = False) -> Destination:
    """Return a writer of the active lanes of ``vdst``. ``clamped``: the caller has clamped an integer result."""
    write = _storage(instruction, target, kind)
    finish = finisher(instruction, target, kind)
    if finish is None:
        if instruction.get("clmp") and not clamped:
            raise Unmodelled(f"{instruction.name}: clamp")
        return write
    return lambda wave, value: write(wave, finish(wave, value))


def finisher(instruction: Instruction, target: Target, kind: str) -> Finish | None:
    """Output modifier and clamp of a float result, or None."""
    factor, clamp = _FACTORS.get(instruction.get("omod")), instruction.get("clmp")
    if factor is not None and kind not in modes.MODE_OF:
        raise Unmodelled(f"{instruction.name}: output modifier of a result that is no float")
    if kind not in modes.MODE_OF or (factor is None and not clamp):
        return None

    def finish(wave: Wave, value: Any) -> Any:
        if factor is not None:
            value = _modified(wave, value, factor, kind)
        return clamp_unit(value, wave) if clamp else value

    return finish


def clamp_unit(value: Any, wave: Wave) -> Any:
    """Floats clamped to 0…1; a NaN becomes 0 if the mode says so."""
    one = value.dtype.type(1)
    clamped = np.where(value > 0, np.where(value < one, value, one), value.dtype.type(0))
    return clamped if modes.clamps_nan(wave.mode, wave.target) else np.where(np.isnan(value), value, clamped)


def _modified(wave: Wave, value: Any, factor: float, kind: str) -> Any:
    """Apply the output modifier, which hardware ignores if denormals or IEEE rules must be kept."""
    if modes.MODE_OF[kind].keeps_outputs(wave.mode) or modes.ieee(wave.mode, wave.target):
        return value
    return modes.flush(value * value.dtype.type(factor)) + value.dtype.type(0)  # + 0: -0 becomes +0


def _storage(instruction: Instruction, target: Target, kind: str) -> Destination:
    operand = vgpr(instruction.operands["vdst"])
    row = row_of(operand)
    size = np.dtype(DTYPES[kind]).itemsize
    place = deposit(instruction.get("dst_sel", 6), instruction.get("dst_unused"))
    if place is not None:
        return _placed(row, place, size)
    if size == 8:
        return write_pair(row)
    if size == 2 and (operand.high or not target.cdna or instruction.name in _KEEP_HALF):
        return write_half(row, int(operand.high))
    if size == 2:
        return _write_extended(row)
    return write_row(row, kind)


def write_row(row: int, kind: str) -> Destination:
    """Return a writer of all 32 bits of a register."""
    where = registers(row, kind, 0)

    def write(wave: Wave, value: Any) -> None:
        if wave.full:
            where(wave)[...] = value
        else:
            np.putmask(where(wave), wave.mask, value)

    return write


def write_pair(row: int) -> Destination:
    """Return a writer of two registers from a 64-bit array."""
    low, high = write_row(row, "u32"), write_row(row + 1, "u32")

    def write(wave: Wave, value: Any) -> None:
        words = value.view(np.uint32)
        low(wave, words[::2])
        high(wave, words[1::2])

    return write


def write_half(row: int, half: int) -> Destination:
    """Return a writer of one half of a register, from a 16-bit array; the other half is kept."""

    def write(wave: Wave, value: Any) -> None:
        part, bits = wave.u[row].view(np.uint16)[half::2], value.view(np.uint16)
        if wave.full:
            part[...] = bits
        else:
            np.copyto(part, bits, where=wave.mask)

    return write


def _write_extended(row: int) -> Destination:
    low = write_row(row, "u32")
    return lambda wave, value: low(wave, value.view(np.uint16))


def _placed(row: int, place: Callable[[Any, Any], Any], size: int) -> Destination:
    """Return a writer of SDWA's part of a register."""
    if size == 8:
        raise Unmodelled("SDWA on 64 bits")
    low = write_row(row, "u32")
    unsigned: Any = np.uint32 if size == 4 else np.uint16

    def write(wave: Wave, value: Any) -> None:
        low(wave, place(value.view(unsigned).astype(np.uint32), wave.u[row]))

    return write
