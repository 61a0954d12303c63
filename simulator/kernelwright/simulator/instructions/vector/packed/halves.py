"""VOP3P: two 16-bit operations, or two of fp32, in one instruction.

For each half of the result ``opsel`` and ``opsel_hi`` choose the half of every source; ``neg`` and ``neg_hi`` change
its sign. A step handles both halves as one array, in the order in which they lie in a register. Constants: an integer
is sign-extended to 32 bits; a float is fp16 in the low half for fp16 instructions and fp32 for others (LLVM,
``AMDGPU::getInlineEncodingV216``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.floating.arithmetic import ADD, FUSED, MULTIPLY, FloatOp, in_mode
from kernelwright.simulator.instructions.vector.floating.extremes import CHOICES, order_of
from kernelwright.simulator.instructions.vector.integer.arithmetic import multiply_add, saturating
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.operands import Source, operand_at
from kernelwright.simulator.instructions.vector.results import Destination, clamp_unit, vgpr, write_row
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES, row_of, scalar_pair, scalar_word
from kernelwright.simulator.machine.wave import Wave

# (function of the sources in 16-bit arithmetic, is it saturated by clamp?, number of sources)
_INTEGERS: dict[str, tuple[Callable[..., Any], bool, int]] = {
    "add": (np.add, True, 2),
    "sub": (np.subtract, True, 2),
    "mad": (multiply_add, True, 3),
    "mul_lo": (np.multiply, False, 2),
    "min": (np.minimum, False, 2),
    "max": (np.maximum, False, 2),
    "lshlrev": (lambda shift, a: a << (shift & 15), False, 2),
    "lshrrev": (lambda shift, a: a >> (shift & 15), False, 2),
    "ashrrev": (lambda shift, a: a >> (shift & 15), False, 2),
}
_INTEGER_NAMES = {
    f"v_pk_{verb}_{kind}": kind for verb in ("add", "sub", "mad", "min", "max") for kind in ("i16", "u16")
}
_INTEGER_NAMES |= {"v_pk_mul_lo_u16": "u16", "v_pk_ashrrev_i16": "i16"}
_INTEGER_NAMES |= {"v_pk_lshlrev_b16": "u16", "v_pk_lshrrev_b16": "u16"}
_FLOATS = {"add": (ADD, 2), "mul": (MULTIPLY, 2), "fma": (FUSED, 3)}


def selection(instruction: Instruction, position: int) -> tuple[int, int]:
    """The halves of a source used for the low and for the high half of the result."""
    upper = instruction.get("opsel_hi") | instruction.get("opsel_hi2") << 2
    return instruction.get("opsel") >> position & 1, upper >> position & 1


def signs(instruction: Instruction, position: int) -> tuple[bool, bool]:
    """Whether a source is negated, for the low and for the high half of the result."""
    return bool(instruction.get("neg") >> position & 1), bool(instruction.get("neg_hi") >> position & 1)


def constant_word(operand: Operand, kind: str) -> int:
    """The 32 bits of a constant in a packed instruction."""
    if isinstance(operand.value, float) and kind == "f16":
        return int(np.float16(operand.value).view(np.uint16))
    return operand.word()


def halves(instruction: Instruction, target: Target, position: int, kind: str) -> Source:
    """A source as an array (2 * lanes,), low and high half of each lane in turn."""
    return chosen_halves(
        operand_at(instruction, position),
        target,
        kind,
        selection(instruction, position),
        signs(instruction, position),
    )


def chosen_halves(
    operand: Operand, target: Target, kind: str, chosen: tuple[int, int], negated: tuple[bool, bool]
) -> Source:
    """As :func:`halves`, for an operand with explicit halves and signs."""
    dtype = DTYPES[kind]
    if any(negated) and kind != "f16":
        raise Unmodelled("neg of a packed operand that is no float")
    if operand.file not in (File.VGPR, File.AGPR):
        return _scalar_halves(operand, target, kind, chosen, negated)
    row = row_of(operand)
    if chosen == (0, 1) and not any(negated):
        return lambda wave: wave.u[row].view(dtype)
    lanes = np.empty(2 * target.lanes, np.uint16)
    low, high = chosen
    flip = np.array([0x8000 * negated[0], 0x8000 * negated[1]] * target.lanes, np.uint16)

    def read(wave: Wave) -> Any:
        register = wave.u[row].view(np.uint16)
        lanes[::2] = register[low::2]
        lanes[1::2] = register[high::2]
        return (lanes ^ flip).view(dtype)

    return read


def _scalar_halves(
    operand: Operand, target: Target, kind: str, chosen: tuple[int, int], negated: tuple[bool, bool]
) -> Source:
    dtype = DTYPES[kind]
    word = constant_word(operand, kind) if operand.constant else 0
    read = (lambda wave: word) if operand.constant else scalar_word(operand)
    flip = negated[0] << 15 | negated[1] << 31

    def source(wave: Wave) -> Any:
        value = read(wave)
        pair = (value >> 16 * chosen[0] & 0xFFFF | (value >> 16 * chosen[1] & 0xFFFF) << 16) ^ flip
        return np.full(target.lanes, pair, np.uint32).view(dtype)

    return source


def packed_destination(instruction: Instruction) -> Destination:
    """Writes both halves of the active lanes."""
    write = write_row(row_of(vgpr(instruction.operands["vdst"])), "u32")
    return lambda wave, value: write(wave, value.view(np.uint32))


@vector(*_INTEGER_NAMES)
def build_packed_integer(instruction: Instruction, target: Target) -> Step:
    """Two 16-bit integer operations."""
    kind = _INTEGER_NAMES[instruction.name]
    verb = instruction.name.removeprefix("v_pk_").rpartition("_")[0]
    function, saturates, count = _INTEGERS[verb]
    if instruction.get("clmp"):
        if not saturates:
            raise Unmodelled(f"{instruction.name}: clamp")
        function = saturating(function, kind)
    inputs = [halves(instruction, target, position, kind) for position in range(count)]
    write = packed_destination(instruction)
    return lambda wave: write(wave, function(*[source(wave) for source in inputs]))


def _bind(op: FloatOp, kind: str, instruction: Instruction, inputs: list[Source], write: Destination) -> Step:
    usual, floats, clamp = op.usual[kind], modes.MODE_OF[kind], bool(instruction.get("clmp"))

    def step(wave: Wave) -> None:
        values = [source(wave) for source in inputs]
        plain = wave.mode & floats.mask == floats.plain
        result = usual(*values) if plain else in_mode(op, kind, wave.mode, values)
        write(wave, clamp_unit(result, wave) if clamp else result)

    return step


@vector(*(f"v_pk_{verb}_f16" for verb in _FLOATS))
def build_packed_half(instruction: Instruction, target: Target) -> Step:
    """Two operations of fp16."""
    op, count = _FLOATS[instruction.name.split("_")[2]]
    inputs = [halves(instruction, target, position, "f16") for position in range(count)]
    return _bind(op, "f16", instruction, inputs, packed_destination(instruction))


@vector("v_pk_fmac_f16")
def build_packed_accumulate(instruction: Instruction, target: Target) -> Step:
    """Fused product with the destination as addend; its encoding has no modifiers."""
    if any(instruction.get(field) for field in ("omod", "clmp", "opsel", "neg", "abs", "dst_sel", "src0_neg")):
        raise Unmodelled(f"{instruction.name}: modifiers")
    operands = [operand_at(instruction, 0), operand_at(instruction, 1), instruction.operands["vdst"]]
    inputs = [chosen_halves(operand, target, "f16", (0, 1), (False, False)) for operand in operands]
    return _bind(FUSED, "f16", instruction, inputs, packed_destination(instruction))


_EXTREMES = {
    **{f"v_pk_{choice}_f16": (choice, False) for choice in ("min", "max")},
    **{f"v_pk_{choice}_num_f16": (choice, False) for choice in ("min", "max")},
    **{f"v_pk_{choice}imum_f16": (choice, True) for choice in ("min", "max")},
    **{f"v_pk_{choice}imum3_f16": (f"{choice}3", True) for choice in ("min", "max")},
}


@vector(*_EXTREMES)
def build_packed_extreme(instruction: Instruction, target: Target) -> Step:
    """Two minima or maxima of fp16."""
    choice, propagates = _EXTREMES[instruction.name]
    count, choose = CHOICES[choice]
    inputs = [halves(instruction, target, position, "f16") for position in range(count)]
    write, clamp = packed_destination(instruction), bool(instruction.get("clmp"))
    floats = modes.MODE_OF["f16"]

    def step(wave: Wave) -> None:
        values = [source(wave) for source in inputs]
        if not floats.keeps_inputs(wave.mode):
            values = [modes.flush(value) for value in values]
        result = choose(order_of(wave, propagates), *values)
        write(wave, clamp_unit(result, wave) if clamp else result)

    return step


def pair(instruction: Instruction, target: Target, position: int) -> Source:
    """A source of a packed fp32 instruction as an array (2, lanes): low results, then high ones."""
    operand = operand_at(instruction, position)
    (low, high), negated = selection(instruction, position), signs(instruction, position)
    if operand.file in (File.VGPR, File.AGPR):
        row = row_of(operand)
        source = _pair_rows(row, low, high, target.lanes)
    elif operand.constant:
        if high:
            raise Unmodelled(f"{instruction.name}: the high half of a constant")
        words = np.full((2, target.lanes), operand.word(), np.uint32).view(np.float32)

        def source(wave: Wave) -> Any:
            return words
    else:
        source = _pair_scalars(scalar_pair(operand), low, high, target.lanes)
    if not any(negated):
        return source
    factors = np.array([[-1.0 if negate else 1.0] for negate in negated], np.float32)
    return lambda wave: source(wave) * factors


def _pair_rows(row: int, low: int, high: int, lanes: int) -> Source:
    if (low, high) == (0, 1):
        return lambda wave: wave.v[row : row + 2].view(np.float32)
    values = np.empty((2, lanes), np.float32)

    def read(wave: Wave) -> Any:
        values[0] = wave.f[row + low]
        values[1] = wave.f[row + high]
        return values

    return read


def _pair_scalars(read: Callable[[Wave], int], low: int, high: int, lanes: int) -> Source:
    words = np.empty((2, lanes), np.uint32)
    values = words.view(np.float32)

    def source(wave: Wave) -> Any:
        value = read(wave)
        words[0] = value >> 32 * low & 0xFFFFFFFF
        words[1] = value >> 32 * high & 0xFFFFFFFF
        return values

    return source


def _pair_destination(instruction: Instruction) -> Destination:
    row = row_of(vgpr(instruction.operands["vdst"]))

    def write(wave: Wave, value: Any) -> None:
        registers = wave.v[row : row + 2].view(np.float32)
        if wave.full:
            registers[...] = value
        else:
            np.copyto(registers, value, where=wave.mask)

    return write


@vector(*(f"v_pk_{verb}_f32" for verb in _FLOATS))
def build_packed_single(instruction: Instruction, target: Target) -> Step:
    """Two operations of fp32."""
    op, count = _FLOATS[instruction.name.split("_")[2]]
    inputs = [pair(instruction, target, position) for position in range(count)]
    return _bind(op, "f32", instruction, inputs, _pair_destination(instruction))


@vector("v_pk_mov_b32")
def build_packed_move(instruction: Instruction, target: Target) -> Step:
    """The low result is a half of the first source, the high one of the second; ``opsel`` chooses."""
    if instruction.get("neg") or instruction.get("neg_hi") or instruction.get("clmp"):
        raise Unmodelled(f"{instruction.name}: modifiers")
    parts = [_move_part(instruction, position) for position in range(2)]
    row = row_of(vgpr(instruction.operands["vdst"]))
    low, high = write_row(row, "u32"), write_row(row + 1, "u32")

    def step(wave: Wave) -> None:
        first, second = (part(wave) for part in parts)
        first = first.copy() if isinstance(first, np.ndarray) else first
        second = second.copy() if isinstance(second, np.ndarray) else second
        low(wave, first)
        high(wave, second)

    return step


def _move_part(instruction: Instruction, position: int) -> Source:
    operand, half = operand_at(instruction, position), instruction.get("opsel") >> position & 1
    if operand.file in (File.VGPR, File.AGPR):
        row = row_of(operand) + half
        return lambda wave: wave.u[row]
    if operand.constant:
        if half:
            raise Unmodelled(f"{instruction.name}: the high half of a constant")
        word = operand.word()
        return lambda wave: word
    read = scalar_pair(operand)
    return lambda wave: read(wave) >> 32 * half & 0xFFFFFFFF
