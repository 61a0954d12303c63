"""Floating-point sums, products and fused products of fp16, fp32 and fp64, in every mode of rounding and denormals.

A result is rounded once, from its exact value. In the usual mode (nearest even, denormals kept) NumPy does that, except
for fused products; the other modes compute in float64 rounded to odd. Payloads and signs of NaNs are not modelled.
``v_mad`` and ``v_mac`` round twice and flush denormal inputs and results whatever the mode (LLVM, ISD::FMAD and
SITargetLowering::isFMADLegal).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, nan
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import bind, bind_in_place, vector
from kernelwright.simulator.instructions.vector.operands import Source, plain, sources
from kernelwright.simulator.instructions.vector.results import destination, direct
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES

Function = Callable[..., Any]

_TIE_BITS, _TIE = np.int64(0x1FFFFFFF), np.int64(0x10000000)  # of a float64 halfway between two fp32 numbers
_MAGNITUDE, _SMALLEST = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(0x3810000000000000)  # the smallest normal fp32


@dataclass(frozen=True)
class FloatOp:
    """``usual`` works on arrays of the type in the usual mode; ``exact`` gives the unrounded result in float64.

    Changing the signs of the sources in ``flip`` changes the sign of the exact result, and nothing else.
    """

    usual: dict[str, Function]
    exact: Function
    flip: tuple[int, ...]


def fused_single(a: Any, b: Any, c: Any) -> Any:
    """fma of fp32 arrays, to nearest even.

    The float64 sum is rounded a second time; that is harmless unless it lies halfway between two fp32 numbers, or below
    the normal ones, where the halfway points differ.
    """
    product, addend = a.astype(np.float64), c.astype(np.float64)
    product *= b
    total = product + addend
    bits = total.view(np.int64)
    if np.count_nonzero((bits & _TIE_BITS) == _TIE) or np.count_nonzero((bits & _MAGNITUDE) < _SMALLEST):
        total = modes.odd_sum(product, addend)
    return total.astype(np.float32)


def fused_half(a: Any, b: Any, c: Any) -> Any:
    """fma of fp16 arrays, to nearest even."""
    return modes.fused(a, b, c).astype(np.float16)


def _fused_number(a: float, b: float, c: float) -> float:
    product = a * b
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        return (product if not (isfinite(a) and isfinite(b)) else 0.0) + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return product + c if product == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def fused_double(a: Any, b: Any, c: Any) -> Any:
    """fma of fp64 arrays, to nearest even: rational numbers, one lane at a time."""
    lanes = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([_fused_number(x, y, z) if x == x and y == y and z == z else nan for x, y, z in lanes])


def _zero_wins(product: Function) -> Function:
    """Multiplication by the rules of DirectX 9: zero times anything is zero."""

    def apply(a: Any, b: Any, *rest: Any) -> Any:
        zero = (a == 0) | (b == 0)
        plus = a.dtype.type(0)
        return product(np.where(zero, plus, a), np.where(zero, plus, b), *rest)

    return apply


_EVERYWHERE = ("f16", "f32", "f64")
_FUSED = {"f16": fused_half, "f32": fused_single, "f64": fused_double}
_ZERO_SUM = {"f32": _zero_wins(fused_single)}

ADD = FloatOp(dict.fromkeys(_EVERYWHERE, np.add), modes.odd_sum, (0, 1))
SUBTRACT = FloatOp(dict.fromkeys(_EVERYWHERE, np.subtract), lambda a, b: modes.odd_sum(a, -b), (0, 1))
MULTIPLY = FloatOp(dict.fromkeys(_EVERYWHERE, np.multiply), np.multiply, (0,))
FUSED = FloatOp(_FUSED, modes.fused, (0, 2))
MULTIPLY_ZERO = FloatOp({"f32": _zero_wins(np.multiply)}, _zero_wins(np.multiply), (0,))
FUSED_ZERO = FloatOp(_ZERO_SUM, _zero_wins(modes.fused), (0, 2))


def in_mode(op: FloatOp, kind: str, mode: int, values: list[Any]) -> Any:
    """The result in any mode. Unmodelled for fp64 that is not rounded to nearest."""
    modes.refuse_saturation(mode, kind)
    floats, dtype = modes.MODE_OF[kind], DTYPES[kind]
    rounding = floats.rounding(mode)
    if not floats.keeps_inputs(mode):
        values = [modes.flush(value) for value in values]
    if kind == "f64":
        if rounding != modes.NEAREST:
            raise Unmodelled("fp64 arithmetic that is not rounded to nearest")
        result = op.usual[kind](*values)
    elif rounding == modes.DOWN:  # as the negation of rounding up, which makes the zero of x - x negative
        flipped = [-value if place in op.flip else value for place, value in enumerate(values)]
        result = -modes.narrow(_wide(op, flipped), dtype, modes.UP)
    else:
        result = modes.narrow(_wide(op, values), dtype, rounding)
    return result if floats.keeps_outputs(mode) else modes.flush(result)


def _wide(op: FloatOp, values: list[Any]) -> Any:
    return op.exact(*[value.astype(np.float64) for value in values])


def bind_float(op: FloatOp, instruction: Instruction, target: Target, kind: str, inputs: list[Source]) -> Step:
    """A step that is fast in the usual mode, and correct in the others."""
    function, write = op.usual[kind], destination(instruction, target, kind)
    out = direct(instruction, kind)
    usual_mode, mask = modes.MODE_OF[kind].plain, modes.MODE_OF[kind].mask
    if out is not None and isinstance(function, np.ufunc):
        usual = bind_in_place(function, out, inputs)
    else:
        usual = bind(function, inputs, write)

    def step(wave: Any) -> None:
        if wave.mode & mask == usual_mode:
            usual(wave)
        else:
            write(wave, in_mode(op, kind, wave.mode, [source(wave) for source in inputs]))

    return step


# name without kind → (operation, does it take its sources in the opposite order?)
_PLAIN = {
    "v_add": (ADD, False),
    "v_sub": (SUBTRACT, False),
    "v_subrev": (SUBTRACT, True),
    "v_mul": (MULTIPLY, False),
    "v_fma": (FUSED, False),
    "v_mul_legacy": (MULTIPLY_ZERO, False),
    "v_mul_dx9_zero": (MULTIPLY_ZERO, False),
    "v_fma_dx9_zero": (FUSED_ZERO, False),
}
_NAMES = {f"{name}_{kind}": (op, kind, reverse) for name, (op, reverse) in _PLAIN.items() for kind in op.usual}
_NAMES["v_fma_legacy_f16"] = _NAMES["v_fma_f16"]  # but it clears the other half of the register
del _NAMES["v_sub_f64"], _NAMES["v_subrev_f64"]  # there are no such instructions


@vector(*_NAMES)
def build_arithmetic(instruction: Instruction, target: Target) -> Step:
    """Operations on all their sources."""
    op, kind, reverse = _NAMES[instruction.name]
    inputs = sources(instruction, target, (kind,) * (3 if op in (FUSED, FUSED_ZERO) else 2))
    return bind_float(op, instruction, target, kind, inputs[::-1] if reverse else inputs)


@vector("v_fmac_f16", "v_fmac_f32", "v_fmac_f64", "v_fmac_dx9_zero_f32")
def build_accumulate(instruction: Instruction, target: Target) -> Step:
    """Fused product with the destination as addend."""
    kind = instruction.name[-3:]
    addend = plain(instruction.operands["vdst"], target, kind)
    inputs = [*sources(instruction, target, (kind, kind)), addend]
    op = FUSED_ZERO if "dx9" in instruction.name else FUSED
    return bind_float(op, instruction, target, kind, inputs)


@vector("v_fmaak_f16", "v_fmaak_f32", "v_fmamk_f16", "v_fmamk_f32")
def build_with_literal(instruction: Instruction, target: Target) -> Step:
    """Fused product with the literal as addend (``ak``) or second factor (``mk``)."""
    kind = instruction.name[-3:]
    first, other = sources(instruction, target, (kind, kind))
    literal = plain(instruction.operands["literal"], target, kind)
    inputs = [first, other, literal] if "ak_" in instruction.name else [first, literal, other]
    return bind_float(FUSED, instruction, target, kind, inputs)


def _unfused(kind: str, mode: int, values: list[Any]) -> Any:
    mode &= ~modes.MODE_OF[kind].plain
    return in_mode(ADD, kind, mode, [in_mode(MULTIPLY, kind, mode, values[:2]), values[2]])


@vector(
    "v_mad_legacy_f16", *(f"v_{verb}_{kind}" for verb in ("mad", "mac", "madak", "madmk") for kind in ("f16", "f32"))
)
def build_unfused(instruction: Instruction, target: Target) -> Step:
    """A product and a sum, each rounded, without denormals; the addend is a source, the destination or a literal."""
    kind, verb = instruction.name[-3:], instruction.name.split("_")[1]
    inputs = sources(instruction, target, (kind,) * (3 if verb == "mad" else 2))
    if verb != "mad":
        name = "vdst" if verb == "mac" else "literal"
        inputs.insert(1 if verb == "madmk" else 2, plain(instruction.operands[name], target, kind))
    write = destination(instruction, target, kind)
    return lambda wave: write(wave, _unfused(kind, wave.mode, [source(wave) for source in inputs]))
