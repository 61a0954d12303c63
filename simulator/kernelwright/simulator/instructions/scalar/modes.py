"""Reading and writing the MODE register: rounding and denormal modes, clamping, IEEE rules, saturation of fp16.

``simm16`` holds the number of a hardware register (MODE is 1), the lowest bit and the number of bits less one (RDNA3
ISA guide, "S_SETREG_B32"). Bits with other meanings (exceptions, indexing, skipping) must stay 0; other hardware
registers are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.scalar.operands import destination
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.modes import OVERFLOW
from kernelwright.simulator.machine.operands import scalar_word
from kernelwright.simulator.machine.wave import Wave

_MODE = 1
_ROUND, _DENORMALS, _RULES = 0x0F, 0xF0, 0x300


def _field(instruction: Instruction) -> tuple[int, int]:
    """(lowest bit, mask before shifting). Unmodelled for a register other than MODE."""
    word = instruction.get("simm16")
    if word & 63 != _MODE:
        raise Unmodelled(f"{instruction.name} of hardware register {word & 63}; only MODE (1) is modelled")
    return word >> 6 & 31, (1 << (word >> 11 & 31) + 1) - 1


def _set(wave: Wave, mode: int, known: int) -> None:
    if mode & ~known & ~wave.mode:
        raise Unmodelled(f"MODE {mode:#x}: only the bits {known:#x} are modelled")
    wave.mode = mode


@semantics("s_setreg_b32", "s_setreg_imm32_b32", kind="scalar")
def build_set(instruction: Instruction, target: Target) -> Step:
    """Replace some bits; the source is in the destination field of other instructions, or a literal."""
    low, mask = _field(instruction)
    name = "sdst" if instruction.name == "s_setreg_b32" else "literal"
    read: Callable[[Wave], int] = scalar_word(instruction.operands[name])
    known = _ROUND | _DENORMALS | OVERFLOW | (0 if target.tables == "rdna4" else _RULES)
    return lambda wave: _set(wave, wave.mode & ~(mask << low) | (read(wave) & mask) << low, known)


@semantics("s_getreg_b32", kind="scalar")
def build_get(instruction: Instruction, target: Target) -> Step:
    """Read some bits, shifted down."""
    (low, mask), write = _field(instruction), destination(instruction, 32)
    return lambda wave: write(wave, wave.mode >> low & mask)


@semantics("s_round_mode", "s_denorm_mode", kind="scalar")
def build_mode(instruction: Instruction, target: Target) -> Step:
    """RDNA's short forms for the four bits of rounding or denormal modes."""
    low = 0 if instruction.name == "s_round_mode" else 4
    bits = (instruction.get("simm16") & 15) << low

    def step(wave: Wave) -> None:
        wave.mode = wave.mode & ~(15 << low) | bits

    return step
