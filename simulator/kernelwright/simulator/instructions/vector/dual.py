"""VOPD, RDNA's dual issue: two instructions that both read before either writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.semantics import Step, build, semantics
from kernelwright.simulator.machine.registers import VGPRS
from kernelwright.simulator.machine.wave import Wave

_ASIDE = 2  # spare row for the first result (rows 0 and 1 serve DPP)
_ACCUMULATES = ("v_fmac_f32", "v_dot2acc_f32_f16", "v_dot2acc_f32_bf16", "v_fmac_dx9_zero_f32")


@semantics("v_dual", kind="vector")
def build_dual(instruction: Instruction, target: Target) -> Step:
    """Execute one half after the other, in an order in which neither reads the other's result."""
    first, second = instruction.parts
    if not _reads(second, first.operands["vdst"]):
        return _in_turn(build(first, target), build(second, target))
    if not _reads(first, second.operands["vdst"]):
        return _in_turn(build(second, target), build(first, target))
    return _set_aside(first, second, target)


def _in_turn(one: Step, other: Step) -> Step:
    def step(wave: Wave) -> None:
        one(wave)
        other(wave)

    return step


def _reads(part: Instruction, written: Operand) -> bool:
    names = [name for name in part.operands if name != "vdst" or part.name in _ACCUMULATES]
    return any(part.operands[name].file is File.VGPR and part.operands[name].index == written.index for name in names)


def _set_aside(first: Instruction, second: Instruction, target: Target) -> Step:
    row, spare = first.operands["vdst"].index, 2 * VGPRS + _ASIDE
    aside = {**first.operands, "vdst": replace(first.operands["vdst"], file=File.AGPR, index=VGPRS + _ASIDE)}
    compute, other = build(replace(first, operands=aside), target), build(second, target)

    def step(wave: Wave) -> None:
        wave.u[spare][...] = wave.u[row]  # the addend of an instruction that accumulates
        compute(wave)
        other(wave)
        np.putmask(wave.u[row], wave.mask, wave.u[spare])

    return step
