"""Matrix instructions: MFMA and WMMA, all shapes and types of :mod:`~kernelwright.simulator.code.matrix_shapes`.

Arithmetic: products are exact, they are summed in fp64 together with C, and the sum is rounded once (to nearest even)
to the accumulator's type; hardware rounds in an order that is not documented. int32 wraps, or saturates if the
instruction clamps. The EXEC mask is ignored, as in hardware. gfx90a's fp16 and bf16 instructions treat denormals as
zeros, in A, B and C, and produce none (ROCm's and PyTorch's notes on numerical accuracy of MI200).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.matrix_shapes import BITS, NAMES, Index, Shape, find
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.matrix.operands import FLOAT16, Matrix, accumulator, finish, source
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import constant, row_of
from kernelwright.simulator.machine.wave import Wave

_FORMATS = {0: "fp8", 1: "bf8"}  # of f8f6f4 operands; 2 and 3 are 6 bits, 4 is 4 bits


def product_of(shape: Shape, blocks: Index) -> tuple[Index, Index, Callable[[Matrix, Matrix], Matrix]]:
    """Index arrays of A and B, and the multiplication, whose result has D's layout (result registers, lanes).

    A's rows are gathered in the order of D's registers, so that D needs no transposition. ``blocks``: the block of A
    that each block of the result uses.
    """
    rows, columns, lanes = shape.result_rows(), np.arange(shape.n), shape.lanes
    one = np.ones_like
    a = np.stack([shape.source_index(rows, block * one(rows)) for block in blocks])
    b = np.stack([shape.source_index(columns, block * one(columns)).T for block in range(shape.blocks)])
    if shape.blocks == 1:
        return a[0], b[0], lambda first, second: np.dot(first, second).reshape(-1, lanes)
    if shape.m != 4:
        return a, b, lambda first, second: np.matmul(first, second).reshape(-1, lanes)
    return a, b, lambda first, second: np.matmul(first, second).transpose(1, 0, 2).reshape(-1, lanes)


@semantics(*NAMES, kind="matrix")
def matrix(instruction: Instruction, target: Target) -> Step:
    """Any of the matrix instructions that the target has."""
    shape = find(instruction.name, target.instructions)
    if shape is None:
        raise Unmodelled(f"{instruction.name} on {target.name}, which does not have it")
    return (mfma if shape.family == "mfma" else wmma)(instruction, target, shape)


def mfma(instruction: Instruction, target: Target, shape: Shape) -> Step:
    """D = A x B + C. ``cbsz`` and ``abid`` broadcast blocks of A; B's swizzles (``blgp``) are refused."""
    name = instruction.name
    kinds = [shape.a, shape.b]
    blocks = np.arange(shape.blocks)
    cbsz, abid, blgp = (instruction.get(field) for field in ("cbsz", "abid", "blgp"))
    if name.endswith("f8f6f4"):
        if abid or cbsz not in _FORMATS or blgp not in _FORMATS:
            raise Unmodelled(f"{name}: operand formats {cbsz} and {blgp}, abid {abid}")
        kinds = [_FORMATS[cbsz], _FORMATS[blgp]]
    elif blgp or 1 << cbsz > shape.blocks or abid >= 1 << cbsz:
        raise Unmodelled(f"{name}: cbsz {cbsz}, abid {abid}, blgp {blgp}")
    else:
        blocks = (blocks >> cbsz << cbsz) + abid
    a_index, b_index, multiply = product_of(shape, blocks)
    return _bind(instruction, target, shape, kinds, (a_index, b_index), multiply)


def _bind(
    instruction: Instruction,
    target: Target,
    shape: Shape,
    kinds: list[str],
    indices: tuple[Index, Index],
    multiply: Callable[[Matrix, Matrix], Matrix],
    signed: tuple[bool, bool] = (True, True),
) -> Step:
    operands = instruction.operands
    clamp = shape.family != "mfma" and bool(instruction.get("clmp"))  # MFMA has acc_cd in that bit
    first, second = (
        source(operands[key], kind, shape.source_registers, index, target, sign)
        for key, kind, index, sign in zip(("src0", "src1"), kinds, indices, signed, strict=True)
    )
    addend = accumulator(operands["src2"], shape)
    write = finish(operands["vdst"], shape, target.instructions == "gfx90a" and shape.a in FLOAT16, clamp)

    def step(wave: Wave) -> None:
        write(wave, multiply(first(wave), second(wave)), addend(wave))

    return step


def wmma(instruction: Instruction, target: Target, shape: Shape) -> Step:
    """D = A x B + C on RDNA. For integers the neg bits of A and B mean that they are signed."""
    name = instruction.name
    integer = shape.accumulator == "i32"
    neg, high, half = instruction.get("neg"), instruction.get("neg_hi"), instruction.get("opsel") >> 2 & 1
    narrow = shape.family == "gfx11" and BITS[shape.accumulator] == 16
    if high or neg & (4 if integer else 7) or (instruction.get("clmp") and not integer):
        raise Unmodelled(f"{name}: neg {neg}, neg_hi {high}, clamp {instruction.get('clmp')}")
    if instruction.get("opsel") & (3 if narrow else 7):
        raise Unmodelled(f"{name}: op_sel {instruction.get('opsel')}")
    a_index, b_index, multiply = product_of(shape, np.arange(1))
    signed = (bool(neg & 1), bool(neg & 2))
    if BITS[shape.accumulator] == 16:
        step = _bind_short(instruction, target, shape, (a_index, b_index), multiply, half)
    else:
        step = _bind(instruction, target, shape, [shape.a, shape.b], (a_index, b_index), multiply, signed)
    return _checked(instruction, shape, step) if shape.family == "gfx11" else step


def _checked(instruction: Instruction, shape: Shape, step: Step) -> Step:
    """A step that first checks gfx11's requirement on A and B: lanes 16-31 repeat lanes 0-15."""
    rows = [row_of(instruction.operands[key]) for key in ("src0", "src1")]
    count = shape.source_registers

    def check(wave: Wave) -> None:
        for row in rows:
            words = wave.v[row : row + count]
            if words[:, :16].tobytes() != words[:, 16:].tobytes():
                raise Trap(f"{instruction.name}: lanes 16-31 of v[{row}:{row + count - 1}] do not repeat lanes 0-15")
        step(wave)

    return check


def _bind_short(
    instruction: Instruction,
    target: Target,
    shape: Shape,
    indices: tuple[Index, Index],
    multiply: Callable[[Matrix, Matrix], Matrix],
    half: int,
) -> Step:
    """16-bit C and D: on gfx11 one half of each register (the other is kept), on gfx12 two rows per register."""
    operands = instruction.operands
    first = source(operands["src0"], shape.a, shape.source_registers, indices[0], target, True)
    second = source(operands["src1"], shape.b, shape.source_registers, indices[1], target, True)
    encode, decode = (_half_bits, _half_values) if shape.accumulator == "f16" else (_brain_bits, _brain_values)
    c, d, count = operands["src2"], row_of(operands["vdst"]), shape.result_registers

    def elements(wave: Wave, row: int) -> NDArray[np.uint16]:
        halves = wave.v[row : row + count].view(np.uint16).reshape(count, 32, 2)
        return halves[:, :, half] if shape.family == "gfx11" else halves.transpose(0, 2, 1)

    def step(wave: Wave) -> None:
        addend = constant(c, "f32") if c.constant else decode(elements(wave, row_of(c))).reshape(8, 32)
        result = elements(wave, d)
        result[...] = encode(multiply(first(wave), second(wave)) + addend).reshape(result.shape)

    return step


def _half_bits(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    return values.astype(np.float16).view(np.uint16)


def _half_values(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    return np.ascontiguousarray(bits).view(np.float16).astype(np.float64)


def _brain_bits(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """fp64 → bf16, rounded once: the step to fp32 rounds to odd, so that it does not disturb the next one."""
    near = values.astype(np.float32)
    bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(values))
    bits |= (near != values) & np.isfinite(values)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def _brain_values(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
