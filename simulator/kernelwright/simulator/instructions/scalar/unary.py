"""SOP1: scalar moves, bit counting, sign extension and the EXEC-saving logic."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.scalar.binary import LOGIC
from kernelwright.simulator.instructions.scalar.operands import (
    M32,
    M64,
    destination,
    nonzero,
    sign_extend,
    signed32,
    silent,
    source,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.wave import Wave

Unary = Callable[[int], int]


def _reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _trailing(value: int) -> int:
    """Position of the lowest one, -1 if there is none."""
    return (value & -value).bit_length() - 1 & M32


def _leading(value: int, bits: int) -> int:
    """Zeros above the highest one, -1 if there is none."""
    return bits - value.bit_length() if value else M32


def _sign_run(value: int, bits: int) -> int:
    """Position, from the top, of the first bit that differs from the sign; -1 if there is none."""
    flipped = value ^ (1 << bits) - 1 if value >> bits - 1 else value
    return bits - flipped.bit_length() if flipped else M32


def _replicate(value: int) -> int:
    return sum((3 << 2 * bit) for bit in range(32) if value >> bit & 1)


def _quads(value: int, bits: int) -> int:
    return sum(1 << quad for quad in range(bits // 4) if value >> 4 * quad & 15)


def _whole_quads(value: int, bits: int) -> int:
    return sum(15 << 4 * quad for quad in range(bits // 4) if value >> 4 * quad & 15)


# name → (function, width of the result, width of the source).
SILENT: dict[str, tuple[Unary, int, int]] = {
    "s_mov_b32": (int, 32, 32),
    "s_mov_b64": (int, 64, 64),
    "s_brev_b32": (lambda a: _reverse(a, 32), 32, 32),
    "s_brev_b64": (lambda a: _reverse(a, 64), 64, 64),
    "s_ff0_i32_b32": (lambda a: _trailing(~a & M32), 32, 32),
    "s_ff0_i32_b64": (lambda a: _trailing(~a & M64), 32, 64),
    "s_ff1_i32_b32": (_trailing, 32, 32),
    "s_ff1_i32_b64": (_trailing, 32, 64),
    "s_flbit_i32_b32": (lambda a: _leading(a, 32), 32, 32),
    "s_flbit_i32_b64": (lambda a: _leading(a, 64), 32, 64),
    "s_flbit_i32": (lambda a: _sign_run(a, 32), 32, 32),
    "s_flbit_i32_i64": (lambda a: _sign_run(a, 64), 32, 64),
    "s_sext_i32_i8": (lambda a: sign_extend(a, 8) & M32, 32, 32),
    "s_sext_i32_i16": (lambda a: sign_extend(a, 16) & M32, 32, 32),
    "s_bitreplicate_b64_b32": (_replicate, 64, 32),
}
for _new, _old in (
    ("s_ctz_i32_b32", "s_ff1_i32_b32"),
    ("s_ctz_i32_b64", "s_ff1_i32_b64"),
    ("s_clz_i32_u32", "s_flbit_i32_b32"),
    ("s_clz_i32_u64", "s_flbit_i32_b64"),
    ("s_cls_i32", "s_flbit_i32"),
    ("s_cls_i32_i64", "s_flbit_i32_i64"),
):
    SILENT[_new] = SILENT[_old]

NONZERO: dict[str, tuple[Unary, int, int]] = {
    "s_not_b32": (lambda a: ~a & M32, 32, 32),
    "s_not_b64": (lambda a: ~a & M64, 64, 64),
    "s_abs_i32": (lambda a: abs(signed32(a)) & M32, 32, 32),
    "s_bcnt0_i32_b32": (lambda a: 32 - a.bit_count(), 32, 32),
    "s_bcnt0_i32_b64": (lambda a: 64 - a.bit_count(), 32, 64),
    "s_bcnt1_i32_b32": (int.bit_count, 32, 32),
    "s_bcnt1_i32_b64": (int.bit_count, 32, 64),
    "s_quadmask_b32": (lambda a: _quads(a, 32), 32, 32),
    "s_quadmask_b64": (lambda a: _quads(a, 64), 64, 64),
    "s_wqm_b32": (lambda a: _whole_quads(a, 32), 32, 32),
    "s_wqm_b64": (lambda a: _whole_quads(a, 64), 64, 64),
}

# Logic of (source, EXEC) that becomes the new EXEC; CDNA's names and RDNA's.
_SAVE = {name: LOGIC[f"s_{name}"] for name in ("and", "or", "xor", "nand", "nor", "xnor", "andn2", "orn2")}
_SAVE |= {
    "and_not1": LOGIC["s_andn2"],
    "or_not1": LOGIC["s_orn2"],
    "andn1": lambda a, b, ones: ones & ~a & b,
    "orn1": lambda a, b, ones: ones & ~a | b,
}
_SAVE |= {"and_not0": _SAVE["andn1"], "or_not0": _SAVE["orn1"]}
_SAVE_NAMES = [f"s_{name}_saveexec_b{bits}" for name in _SAVE for bits in (32, 64)]
_WRITE_NAMES = [f"s_{name}_wrexec_b{b}" for name in ("andn1", "andn2", "and_not0", "and_not1") for b in (32, 64)]


@semantics(*SILENT, kind="scalar")
def build_silent(instruction: Instruction, target: Target) -> Step:
    """Moves, bit searches and sign extension."""
    function, result, bits = SILENT[instruction.name]
    read, write = source(instruction, "ssrc0", bits), destination(instruction, result)
    if function is int:
        return lambda wave: write(wave, read(wave))
    return silent(function, [read], write)


@semantics(*NONZERO, kind="scalar")
def build_nonzero(instruction: Instruction, target: Target) -> Step:
    """Complement, absolute value, population counts and quads."""
    function, result, bits = NONZERO[instruction.name]
    return nonzero(function, [source(instruction, "ssrc0", bits)], destination(instruction, result))


@semantics("s_cmov_b32", "s_cmov_b64", kind="scalar")
def build_conditional_move(instruction: Instruction, target: Target) -> Step:
    """Moves if SCC is set."""
    bits = int(instruction.name[-2:])
    read, write = source(instruction, "ssrc0", bits), destination(instruction, bits)

    def step(wave: Wave) -> None:
        if wave.scc:
            write(wave, read(wave))

    return step


@semantics("s_bitset0_b32", "s_bitset1_b32", "s_bitset0_b64", "s_bitset1_b64", kind="scalar")
def build_bit_set(instruction: Instruction, target: Target) -> Step:
    """Clears or sets the bit of the destination that the source names."""
    bits = int(instruction.name[-2:])
    one = instruction.name.startswith("s_bitset1")
    read, write = source(instruction, "ssrc0", 32), destination(instruction, bits)
    old = source(instruction, "sdst", bits)

    def step(wave: Wave) -> None:
        bit = 1 << (read(wave) & bits - 1)
        write(wave, old(wave) | bit if one else old(wave) & ~bit)

    return step


@semantics(*_SAVE_NAMES, *_WRITE_NAMES, kind="scalar")
def build_exec_logic(instruction: Instruction, target: Target) -> Step:
    """Logic on EXEC; ``saveexec`` returns the old EXEC, ``wrexec`` the new one. SCC says whether any lane is active."""
    name, kind, width = instruction.name.removeprefix("s_").rsplit("_", 2)
    bits = int(width[1:])
    function, saves = _SAVE[name], kind == "saveexec"
    # s_andn2_wrexec is source and not EXEC, which is what saveexec of the same name computes.
    ones = (1 << bits) - 1
    read, write = source(instruction, "ssrc0", bits), destination(instruction, bits)

    def step(wave: Wave) -> None:
        old = wave.exec
        new = function(read(wave), old, ones)
        write(wave, old if saves else new)
        wave.set_exec(new & ((1 << wave.lanes) - 1))
        wave.scc = 1 if wave.exec else 0

    return step
