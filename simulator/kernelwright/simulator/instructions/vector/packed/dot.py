"""Dot products of the parts of a register: fp16, bf16, fp8 and integers, added to a third operand or the destination.

Floats: products are exact, their sum is formed in fp64 and rounded once; hardware rounds in an order that is not
documented (as for matrix instructions). Integers wrap, or saturate if the instruction clamps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.float8 import values as float8_values
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.floating.convert import to_bfloat16
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.operands import Source, operand_at, plain
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES
from kernelwright.simulator.machine.wave import Wave

Parts = Callable[[Any], Any]  # words (lanes,) → parts (lanes, n), in int64 or float64


def _fields(bits: int, signed: bool) -> Parts:
    """Integer parts of words."""
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    mask, sign = (1 << bits) - 1, 1 << bits - 1

    def parts(words: Any) -> Any:
        fields = (words[:, None] >> shifts & np.uint32(mask)).astype(np.int64)
        return (fields ^ sign) - sign if signed else fields

    return parts


# name → (bits of a part, are the parts of both sources signed?)
_INTEGERS = {
    "v_dot2_i32_i16": (16, True),
    "v_dot2_u32_u16": (16, False),
    "v_dot4_i32_i8": (8, True),
    "v_dot4_u32_u8": (8, False),
    "v_dot8_i32_i4": (4, True),
    "v_dot8_u32_u4": (4, False),
    "v_dot2c_i32_i16": (16, True),
    "v_dot4c_i32_i8": (8, True),
    "v_dot8c_i32_i4": (4, True),
}
_ANY_MODE = modes.SINGLE.mask | modes.OTHER.mask
_SIGN_BITS = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}  # signs by neg
_USUAL_SELECTION = {"opsel": (0,), "opsel_hi": (0, 3), "opsel_hi2": (0, 1), "neg_hi": (0,)}


def _refuse_selection(instruction: Instruction) -> None:
    """Refuse opsel, which selects halves for a dot product's two products; compilers leave it at its default."""
    for field, allowed in _USUAL_SELECTION.items():
        if field in instruction.fields and instruction.get(field) not in allowed:
            raise Unmodelled(f"{instruction.name}: {field}")


def _addend(instruction: Instruction, target: Target, kind: str) -> Source:
    accumulates = "c_" in instruction.name or "acc_" in instruction.name
    operand = instruction.operands["vdst"] if accumulates else operand_at(instruction, 2)
    return plain(operand, target, kind)


@vector(*_INTEGERS, *_SIGN_BITS)
def build_integer_dot(instruction: Instruction, target: Target) -> Step:
    """Products of integer parts."""
    _refuse_selection(instruction)
    name, signs = instruction.name, instruction.get("neg")
    if name in _SIGN_BITS:
        parts = [_fields(_SIGN_BITS[name], bool(signs >> position & 1)) for position in range(2)]
        signs &= 4
        kind = "i32"
    else:
        parts, kind = [_fields(*_INTEGERS[name])] * 2, name.split("_")[2]
    if signs:
        raise Unmodelled(f"{name}: neg")
    first, second = (plain(operand_at(instruction, position), target, "u32") for position in range(2))
    addend, limits = _addend(instruction, target, kind), np.iinfo(DTYPES[kind])
    write, clamp = destination(instruction, target, kind, clamped=True), bool(instruction.get("clmp"))

    def step(wave: Wave) -> None:
        total = (parts[0](first(wave)) * parts[1](second(wave))).sum(axis=1) + addend(wave)
        write(wave, (np.clip(total, limits.min, limits.max) if clamp else total).astype(limits.dtype))

    return step


def bfloat16_values(words: Any) -> Any:
    """The two bf16 parts of words, in float64."""
    return (np.ascontiguousarray(words).view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(-1, 2)


def _half_values(words: Any) -> Any:
    return np.ascontiguousarray(words).view(np.float16).reshape(-1, 2)


def _float8_parts(target: Target, kind: str) -> Parts:
    table = float8_values(target, kind)
    return lambda words: table[np.ascontiguousarray(words).view(np.uint8)].reshape(-1, 4)


# name → kinds of the parts of both sources
_SINGLES = {
    "v_dot2_f32_f16": ("f16", "f16"),
    "v_dot2_f32_bf16": ("bf16", "bf16"),
    "v_dot2c_f32_f16": ("f16", "f16"),
    "v_dot2c_f32_bf16": ("bf16", "bf16"),
    "v_dot2acc_f32_f16": ("f16", "f16"),
    "v_dot2acc_f32_bf16": ("bf16", "bf16"),
} | {f"v_dot4_f32_{a}_{b}": (a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")}


@vector(*_SINGLES)
def build_float_dot(instruction: Instruction, target: Target) -> Step:
    """Products of float parts, summed to fp32."""
    _refuse_selection(instruction)
    if instruction.get("neg") or instruction.get("abs"):
        raise Unmodelled(f"{instruction.name}: neg")
    parts = [_float_parts(target, kind) for kind in _SINGLES[instruction.name]]
    first, second = (
        _words(instruction, target, position, kind) for position, kind in enumerate(_SINGLES[instruction.name])
    )
    addend, write = _addend(instruction, target, "f32"), destination(instruction, target, "f32")

    def step(wave: Wave) -> None:
        if wave.mode & modes.SINGLE.mask != modes.SINGLE.plain:
            raise Unmodelled(f"{instruction.name} in this rounding or denormal mode")
        products = parts[0](first(wave)).astype(np.float64) * parts[1](second(wave))
        write(wave, (products.sum(axis=1) + addend(wave)).astype(np.float32))

    return step


@vector("v_dot2_f16_f16", "v_dot2_bf16_bf16")
def build_half_dot(instruction: Instruction, target: Target) -> Step:
    """Products of fp16 or bf16, summed to one half of a register."""
    if instruction.get("neg") or instruction.get("abs") or instruction.get("clmp") or instruction.get("opsel") & 3:
        raise Unmodelled(f"{instruction.name}: modifiers")
    half = instruction.name.endswith("_f16")
    kind = "f16" if half else "bf16"
    parts = _float_parts(target, kind)
    first, second = (_words(instruction, target, position, kind) for position in range(2))
    addend = plain(operand_at(instruction, 2), target, "f16" if half else "u16")
    write = destination(instruction, target, "f16" if half else "u16")

    def step(wave: Wave) -> None:
        if wave.mode & _ANY_MODE != modes.SINGLE.plain | modes.OTHER.plain:
            raise Unmodelled(f"{instruction.name} in this rounding or denormal mode")
        products = parts(first(wave)).astype(np.float64) * parts(second(wave))
        if half:
            write(wave, (products.sum(axis=1) + addend(wave)).astype(np.float16))
            return
        wide = (addend(wave).astype(np.uint32) << np.uint32(16)).view(np.float32)
        write(wave, to_bfloat16_once(products.sum(axis=1) + wide).astype(np.uint16))

    return step


def to_bfloat16_once(wide: Any) -> Any:
    """float64 → bf16 bits, rounded once: by way of fp32 rounded to odd."""
    toward_zero = modes.narrow(wide, np.float32, modes.ZERO)
    inexact = np.isfinite(toward_zero) & (toward_zero != wide)
    odd = np.where(inexact, toward_zero.view(np.uint32) | np.uint32(1), toward_zero.view(np.uint32))
    return to_bfloat16(odd.view(np.float32))


def _words(instruction: Instruction, target: Target, position: int, kind: str) -> Source:
    operand = operand_at(instruction, position)
    if operand.constant and operand.value != 0:
        raise Unmodelled(f"{instruction.name}: a constant as a packed {kind} operand")
    return plain(operand, target, "u32")


def _float_parts(target: Target, kind: str) -> Parts:
    if kind in ("fp8", "bf8"):
        return _float8_parts(target, kind)
    return _half_values if kind == "f16" else bfloat16_values
