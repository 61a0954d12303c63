"""SOP2: scalar integer arithmetic, logic and shifts of two sources ("SOP2 Instructions" of the ISA guides)."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.scalar.operands import (
    M32,
    M64,
    carrying,
    destination,
    nonzero,
    sign_extend,
    signed32,
    signed64,
    silent,
    source,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.wave import Wave

Carry = Callable[[int, int, int], tuple[int, int]]


def _overflow(exact: int) -> tuple[int, int]:
    return exact & M32, int(not -0x8000_0000 <= exact <= 0x7FFF_FFFF)


def _carry(exact: int) -> tuple[int, int]:
    return exact & M32, int(not 0 <= exact <= M32)


def _pick(first_wins: bool, first: int, second: int) -> tuple[int, int]:
    return (first, 1) if first_wins else (second, 0)


def _field(value: int, control: int, bits: int) -> int:
    """Bit field extract: offset in the low 5 or 6 bits of the control, width in bits 16-22."""
    return value >> (control & bits - 1) & (1 << (control >> 16 & 0x7F)) - 1


def _signed_field(value: int, control: int, bits: int) -> int:
    width = control >> 16 & 0x7F
    if not width:
        return 0
    shifted = sign_extend(value, bits) >> (control & bits - 1)
    return sign_extend(shifted, width) & (1 << bits) - 1 if width < bits else shifted & (1 << bits) - 1


# Result and new SCC from the sources and SCC, 32 bits.
CARRYING: dict[str, Carry] = {
    "s_add_u32": lambda a, b, scc: _carry(a + b),
    "s_sub_u32": lambda a, b, scc: _carry(a - b),
    "s_add_i32": lambda a, b, scc: _overflow(signed32(a) + signed32(b)),
    "s_sub_i32": lambda a, b, scc: _overflow(signed32(a) - signed32(b)),
    "s_addc_u32": lambda a, b, scc: _carry(a + b + scc),
    "s_subb_u32": lambda a, b, scc: _carry(a - b - scc),
    "s_min_i32": lambda a, b, scc: _pick(signed32(a) < signed32(b), a, b),
    "s_max_i32": lambda a, b, scc: _pick(signed32(a) >= signed32(b), a, b),
    "s_min_u32": lambda a, b, scc: _pick(a < b, a, b),
    "s_max_u32": lambda a, b, scc: _pick(a >= b, a, b),
    **{f"s_lshl{n}_add_u32": lambda a, b, scc, n=n: _carry((a << n) + b) for n in (1, 2, 3, 4)},  # type: ignore[misc]
}
for _new, _old in (
    ("s_add_co_u32", "s_add_u32"),
    ("s_sub_co_u32", "s_sub_u32"),
    ("s_add_co_i32", "s_add_i32"),
    ("s_sub_co_i32", "s_sub_i32"),
    ("s_add_co_ci_u32", "s_addc_u32"),
    ("s_sub_co_ci_u32", "s_subb_u32"),
):
    CARRYING[_new] = CARRYING[_old]

# SCC = result is not 0; without the suffix of the width. Functions of (a, b, all ones).
LOGIC: dict[str, Callable[[int, int, int], int]] = {
    "s_and": lambda a, b, ones: a & b,
    "s_or": lambda a, b, ones: a | b,
    "s_xor": lambda a, b, ones: a ^ b,
    "s_nand": lambda a, b, ones: ones & ~(a & b),
    "s_nor": lambda a, b, ones: ones & ~(a | b),
    "s_xnor": lambda a, b, ones: ones & ~(a ^ b),
    "s_andn2": lambda a, b, ones: a & ~b,
    "s_orn2": lambda a, b, ones: a | (ones & ~b),
    "s_and_not1": lambda a, b, ones: a & ~b,
    "s_or_not1": lambda a, b, ones: a | (ones & ~b),
}

# name → (function, width of the result and of the first source, width of the second); SCC = result is not 0.
NONZERO: dict[str, tuple[Callable[[int, int], int], int, int]] = {
    "s_lshl_b32": (lambda a, b: a << (b & 31) & M32, 32, 32),
    "s_lshl_b64": (lambda a, b: a << (b & 63) & M64, 64, 32),
    "s_lshr_b32": (lambda a, b: a >> (b & 31), 32, 32),
    "s_lshr_b64": (lambda a, b: a >> (b & 63), 64, 32),
    "s_ashr_i32": (lambda a, b: signed32(a) >> (b & 31) & M32, 32, 32),
    "s_ashr_i64": (lambda a, b: signed64(a) >> (b & 63) & M64, 64, 32),
    "s_bfe_u32": (lambda a, b: _field(a, b, 32), 32, 32),
    "s_bfe_i32": (lambda a, b: _signed_field(a, b, 32), 32, 32),
    "s_bfe_u64": (lambda a, b: _field(a, b, 64), 64, 32),
    "s_bfe_i64": (lambda a, b: _signed_field(a, b, 64), 64, 32),
    "s_absdiff_i32": (lambda a, b: abs(signed32(signed32(a) - signed32(b) & M32)) & M32, 32, 32),
}
for _name, _function in LOGIC.items():
    NONZERO[f"{_name}_b32"] = (lambda a, b, f=_function: f(a, b, M32), 32, 32)  # type: ignore[misc]
    NONZERO[f"{_name}_b64"] = (lambda a, b, f=_function: f(a, b, M64), 64, 64)  # type: ignore[misc]
# The most common ones, without an intermediate call.
NONZERO["s_and_b32"] = (int.__and__, 32, 32)
NONZERO["s_and_b64"] = (int.__and__, 64, 64)
NONZERO["s_or_b32"] = (int.__or__, 32, 32)
NONZERO["s_or_b64"] = (int.__or__, 64, 64)
NONZERO["s_xor_b32"] = (int.__xor__, 32, 32)
NONZERO["s_xor_b64"] = (int.__xor__, 64, 64)

# As NONZERO, but SCC is unchanged.
SILENT: dict[str, tuple[Callable[[int, int], int], int, int]] = {
    "s_mul_i32": (lambda a, b: a * b & M32, 32, 32),
    "s_mul_hi_u32": (lambda a, b: a * b >> 32, 32, 32),
    "s_mul_hi_i32": (lambda a, b: signed32(a) * signed32(b) >> 32 & M32, 32, 32),
    "s_mul_u64": (lambda a, b: a * b & M64, 64, 64),
    "s_add_nc_u64": (lambda a, b: a + b & M64, 64, 64),
    "s_sub_nc_u64": (lambda a, b: a - b & M64, 64, 64),
    "s_bfm_b32": (lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32, 32, 32),
    "s_bfm_b64": (lambda a, b: ((1 << (a & 63)) - 1) << (b & 63) & M64, 64, 32),
    "s_pack_ll_b32_b16": (lambda a, b: a & 0xFFFF | b << 16 & M32, 32, 32),
    "s_pack_lh_b32_b16": (lambda a, b: a & 0xFFFF | b & 0xFFFF_0000, 32, 32),
    "s_pack_hh_b32_b16": (lambda a, b: a >> 16 | b & 0xFFFF_0000, 32, 32),
    "s_pack_hl_b32_b16": (lambda a, b: a >> 16 | b << 16 & M32, 32, 32),
}


def _reads(instruction: Instruction, first: int, second: int) -> list[Callable[[Wave], int]]:
    return [source(instruction, "ssrc0", first), source(instruction, "ssrc1", second)]


@semantics(*CARRYING, kind="scalar")
def build_carrying(instruction: Instruction, target: Target) -> Step:
    """Additions, subtractions, minima and maxima."""
    return carrying(CARRYING[instruction.name], _reads(instruction, 32, 32), destination(instruction, 32))


@semantics(*NONZERO, kind="scalar")
def build_nonzero(instruction: Instruction, target: Target) -> Step:
    """Logic, shifts and bit fields."""
    function, first, second = NONZERO[instruction.name]
    return nonzero(function, _reads(instruction, first, second), destination(instruction, first))


@semantics(*SILENT, kind="scalar")
def build_silent(instruction: Instruction, target: Target) -> Step:
    """Products, masks and packing."""
    function, first, second = SILENT[instruction.name]
    width = 32 if instruction.name == "s_bfm_b64" else first
    return silent(function, _reads(instruction, width, second), destination(instruction, first))


@semantics("s_cselect_b32", "s_cselect_b64", kind="scalar")
def build_select(instruction: Instruction, target: Target) -> Step:
    """The first source if SCC is set, else the second."""
    bits = int(instruction.name[-2:])
    first, second = _reads(instruction, bits, bits)
    write = destination(instruction, bits)
    return lambda wave: write(wave, first(wave) if wave.scc else second(wave))
