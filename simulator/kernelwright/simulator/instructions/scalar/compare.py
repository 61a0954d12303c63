"""SOPC and the constant forms of SOPK: scalar integer comparisons and bit tests into SCC."""

from __future__ import annotations

import operator
from collections.abc import Callable

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.scalar.operands import M32, destination, sign_extend, signed32, source
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.wave import Wave

RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "lg": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_COMPARES = [f"s_cmp_{relation}_{kind}" for relation in RELATIONS for kind in ("i32", "u32")]
_CONSTANTS = [f"s_cmpk_{relation}_{kind}" for relation in RELATIONS for kind in ("i32", "u32")]
_BIT_TESTS = [f"s_bitcmp{bit}_b{bits}" for bit in (0, 1) for bits in (32, 64)]


@semantics(*_COMPARES, "s_cmp_eq_u64", "s_cmp_lg_u64", kind="scalar")
def build_compare(instruction: Instruction, target: Target) -> Step:
    """SCC = relation of both sources."""
    _, _, relation, kind = instruction.name.split("_")
    compare, bits = RELATIONS[relation], int(kind[1:])
    first, second = source(instruction, "ssrc0", bits), source(instruction, "ssrc1", bits)
    if kind == "i32" and relation not in ("eq", "lg"):

        def signed(wave: Wave) -> None:
            # Flipping the sign bits makes unsigned order of signed order.
            wave.scc = int(compare(first(wave) ^ 0x8000_0000, second(wave) ^ 0x8000_0000))

        return signed

    def unsigned(wave: Wave) -> None:
        wave.scc = int(compare(first(wave), second(wave)))

    return unsigned


@semantics(*_CONSTANTS, kind="scalar")
def build_compare_constant(instruction: Instruction, target: Target) -> Step:
    """SCC = relation of a register and a 16-bit constant, sign-extended for i32 and zero-extended for u32."""
    _, _, relation, kind = instruction.name.split("_")
    compare, read = RELATIONS[relation], source(instruction, "sdst", 32)
    constant = instruction.get("simm16")
    if kind == "u32":

        def unsigned(wave: Wave) -> None:
            wave.scc = int(compare(read(wave), constant))

        return unsigned
    number = sign_extend(constant, 16)

    def signed(wave: Wave) -> None:
        wave.scc = int(compare(signed32(read(wave)), number))

    return signed


@semantics(*_BIT_TESTS, kind="scalar")
def build_bit_test(instruction: Instruction, target: Target) -> Step:
    """SCC = whether the named bit of the first source is 0 or 1."""
    wanted, bits = int(instruction.name[8]), int(instruction.name[-2:])
    value, index = source(instruction, "ssrc0", bits), source(instruction, "ssrc1", 32)

    def step(wave: Wave) -> None:
        wave.scc = int(value(wave) >> (index(wave) & bits - 1) & 1 == wanted)

    return step


@semantics("s_movk_i32", "s_cmovk_i32", "s_mulk_i32", "s_addk_i32", "s_addk_co_i32", kind="scalar")
def build_constant(instruction: Instruction, target: Target) -> Step:
    """A register and a sign-extended 16-bit constant."""
    number = sign_extend(instruction.get("simm16"), 16)
    read, write = source(instruction, "sdst", 32), destination(instruction, 32)

    def move(wave: Wave) -> None:
        write(wave, number & M32)

    def conditional_move(wave: Wave) -> None:
        if wave.scc:
            write(wave, number & M32)

    def multiply(wave: Wave) -> None:
        write(wave, read(wave) * number & M32)

    def add(wave: Wave) -> None:
        total = signed32(read(wave)) + number
        write(wave, total & M32)
        wave.scc = int(not -0x8000_0000 <= total <= 0x7FFF_FFFF)

    steps = {"s_movk_i32": move, "s_cmovk_i32": conditional_move, "s_mulk_i32": multiply}
    return steps.get(instruction.name, add)
