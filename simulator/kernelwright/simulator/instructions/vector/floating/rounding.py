"""Decomposition and composition of floats: rounding to whole numbers, fractions, exponents, and division steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.floating.arithmetic import FUSED, in_mode
from kernelwright.simulator.instructions.vector.lanewise import bind, bind_in_place, vector
from kernelwright.simulator.instructions.vector.masks import lane_mask, mask_destination, mask_source
from kernelwright.simulator.instructions.vector.operands import sources
from kernelwright.simulator.instructions.vector.results import destination, direct
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES
from kernelwright.simulator.machine.registers import to_bits
from kernelwright.simulator.machine.wave import Wave

_KINDS = ("f16", "f32", "f64")


def fraction(values: Any) -> Any:
    """x - floor(x), always below 1 (LLVM replaces ``min(x - floor(x), below 1)`` by the instruction)."""
    one = values.dtype.type(1)
    below = np.nextafter(one, values.dtype.type(0))
    return np.minimum(values - np.floor(values), below)


def _mantissa(values: Any) -> Any:
    return np.where(np.isfinite(values), np.frexp(values)[0], values)


_WHOLE: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rndne": np.rint,
    "fract": fraction,
    "frexp_mant": _mantissa,
}
_NAMES = {f"v_{name}_{kind}": (function, kind) for name, function in _WHOLE.items() for kind in _KINDS}


@vector(*_NAMES)
def build_whole(instruction: Instruction, target: Target) -> Step:
    """Exact functions of one float."""
    function, kind = _NAMES[instruction.name]
    inputs, write = sources(instruction, target, (kind,)), destination(instruction, target, kind)
    out, usual = direct(instruction, kind), modes.MODE_OF[kind].plain
    if out is not None and isinstance(function, np.ufunc):
        plain = bind_in_place(function, out, inputs)
    else:
        plain = bind(function, inputs, write)

    def step(wave: Wave) -> None:
        if wave.mode & usual == usual:
            plain(wave)
        else:
            write(wave, modes.flush(function(modes.flush(inputs[0](wave)))))

    return step


@vector("v_frexp_exp_i16_f16", "v_frexp_exp_i32_f32", "v_frexp_exp_i32_f64")
def build_exponent(instruction: Instruction, target: Target) -> Step:
    """The exponent that belongs to a mantissa in [0.5, 1); 0 for zeros, infinities and NaNs."""
    kind, result = instruction.name[-3:], instruction.name.split("_")[-2]
    (source,) = sources(instruction, target, (kind,))
    write, usual = destination(instruction, target, result), modes.MODE_OF[kind].plain

    def step(wave: Wave) -> None:
        value = source(wave)
        value = value if wave.mode & usual == usual else modes.flush(value)
        exponent = np.where(np.isfinite(value), np.frexp(value)[1], 0)
        write(wave, exponent.astype(DTYPES[result]))

    return step


def scale(values: Any, exponents: Any, mode: int, kind: str) -> Any:
    """x * 2**n, rounded once."""
    modes.refuse_saturation(mode, kind)
    floats = modes.MODE_OF[kind]
    values = values if floats.keeps_inputs(mode) else modes.flush(values)
    if kind == "f64" and floats.rounding(mode) != modes.NEAREST:
        raise Unmodelled("v_ldexp_f64 that is not rounded to nearest")
    wide = np.ldexp(values.astype(np.float64), np.clip(exponents, -2200, 2200).astype(np.int32))
    result = wide if kind == "f64" else modes.narrow(wide, DTYPES[kind], floats.rounding(mode))
    return result if floats.keeps_outputs(mode) else modes.flush(result)


@vector("v_ldexp_f16", "v_ldexp_f32", "v_ldexp_f64")
def build_ldexp(instruction: Instruction, target: Target) -> Step:
    """Scale by 2 to the second source, a signed exponent."""
    kind = instruction.name[-3:]
    value, exponent = sources(instruction, target, (kind, "i16" if kind == "f16" else "i32"))
    write = destination(instruction, target, kind)
    floats, single = modes.MODE_OF[kind], kind == "f32"

    def step(wave: Wave) -> None:
        if single and wave.mode & floats.mask == floats.plain:
            write(wave, np.ldexp(value(wave), exponent(wave)))
        else:
            write(wave, scale(value(wave), exponent(wave), wave.mode, kind))

    return step


@dataclass(frozen=True)
class Division:
    """Parameters of a type's division steps: the position of its exponent, and the bounds of the ISA pseudo code."""

    mantissa: int
    exponent_mask: int
    tiny: int  # biased exponent below which a numerator is scaled
    far: int  # difference of exponents from which a quotient may overflow
    shift: int  # number of bits that scaling moves
    under: int  # difference of exponents below which a quotient is zero
    over: int  # difference of exponents from which it is infinite


_DIVISIONS = {
    "f16": Division(10, 31, 0, 0, 0, -64, 17),
    "f32": Division(23, 255, 23, 96, 64, -150, 129),
    "f64": Division(52, 2047, 53, 768, 128, -1075, 1025),
}


def _exponent(values: Any, how: Division) -> Any:
    """The biased exponent."""
    bits = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return (bits >> np.uint64(how.mantissa) & np.uint64(how.exponent_mask)).astype(np.int64)


def _denormal(values: Any) -> Any:
    return (values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)


def division_scale(a: Any, denominator: Any, numerator: Any, how: Division) -> tuple[Any, Any]:
    """(numerator or denominator ``a`` scaled for the following steps, whether v_div_fmas must scale back).

    The cases of the ISA pseudo code, except for a denominator whose reciprocal is denormal: it is scaled down, even if
    the quotient is denormal (the guides say up, which would make it infinite).
    """
    up, down = (np.ldexp(a, shift).astype(a.dtype) for shift in (how.shift, -how.shift))
    quotient = np.abs(numerator / denominator)
    tiny = np.finfo(a.dtype).tiny
    huge_denominator = np.abs(denominator) > 1 / tiny
    small_quotient = quotient < tiny
    far = _exponent(numerator, how) - _exponent(denominator, how) >= how.far
    is_denominator, is_numerator = a == denominator, a == numerator
    zero = (numerator == 0) | (denominator == 0)
    cases = [
        (zero, a.dtype.type(np.nan), False),
        (far, np.where(is_denominator, up, a), True),
        (_denormal(denominator), up, False),
        (huge_denominator & small_quotient, np.where(is_denominator, down, a), True),
        (huge_denominator, down, False),
        (small_quotient, np.where(is_numerator, up, a), True),
        (_exponent(numerator, how) <= how.tiny, up, False),
    ]
    conditions = [condition for condition, _, _ in cases]
    flags = np.select(conditions, [np.full(len(a), flag) for _, _, flag in cases], False)
    return np.select(conditions, [np.broadcast_to(value, a.shape) for _, value, _ in cases], a), flags


@vector("v_div_scale_f32", "v_div_scale_f64")
def build_division_scale(instruction: Instruction, target: Target) -> Step:
    """First step of a division: sources are the number to scale, denominator and numerator."""
    kind = instruction.name[-3:]
    inputs = sources(instruction, target, (kind,) * 3)
    write, write_mask = destination(instruction, target, kind), mask_destination(instruction)

    def step(wave: Wave) -> None:
        value, denominator, numerator = (source(wave) for source in inputs)
        scaled, flags = division_scale(value, denominator, numerator, _DIVISIONS[kind])
        write(wave, scaled)
        write_mask(wave, to_bits(flags) & wave.exec)

    return step


@vector("v_div_fmas_f32", "v_div_fmas_f64")
def build_division_fma(instruction: Instruction, target: Target) -> Step:
    """Last fused step of a division; lanes of VCC undo the scaling, in a direction given by the quotient's size."""
    kind = instruction.name[-3:]
    how, one = _DIVISIONS[kind], DTYPES[kind](1)
    inputs, write = sources(instruction, target, (kind,) * 3), destination(instruction, target, kind)
    flags = mask_source(None, target)

    def step(wave: Wave) -> None:
        values = [source(wave) for source in inputs]
        bits = flags(wave)
        if not bits:
            write(wave, in_mode(FUSED, kind, wave.mode, values))
            return
        up = np.where(np.abs(values[2]) >= one, how.shift, -how.shift)
        shift = np.where(lane_mask(bits, wave.lanes), up, 0)
        # Scaled before rounding: a denormal quotient is rounded once.
        write(wave, _scaled_fused(values, shift, wave.mode, kind))

    return step


def _scaled_fused(values: list[Any], shift: Any, mode: int, kind: str) -> Any:
    if kind == "f64":
        return scale(in_mode(FUSED, kind, mode, values), shift, mode, kind)
    floats = modes.MODE_OF[kind]
    values = values if floats.keeps_inputs(mode) else [modes.flush(value) for value in values]
    result = modes.narrow(np.ldexp(modes.fused(*values), shift), DTYPES[kind], floats.rounding(mode))
    return result if floats.keeps_outputs(mode) else modes.flush(result)


def division_fixup(quotient: Any, denominator: Any, numerator: Any, how: Division) -> Any:
    """The quotient, or the IEEE 754 result for special operands, with the correct sign.

    The guides' condition for overflow can never hold; here it is a difference of exponents, like theirs for underflow.
    """
    dtype = quotient.dtype.type
    sign = np.where(np.signbit(denominator) ^ np.signbit(numerator), dtype(-1), dtype(1))
    nan = np.isnan(numerator) | np.isnan(denominator)
    zeros = (denominator == 0) & (numerator == 0)
    infinities = np.isinf(denominator) & np.isinf(numerator)
    infinite = (denominator == 0) | np.isinf(numerator)
    zero = np.isinf(denominator) | (numerator == 0)
    difference = _exponent(numerator, how) - _exponent(denominator, how)
    infinite |= ~zero & (difference >= how.over)
    zero |= difference < how.under
    choices = [(nan | zeros | infinities, dtype(np.nan)), (infinite, dtype(np.inf)), (zero, dtype(0))]
    conditions = [condition for condition, _ in choices]
    magnitude = np.select(conditions, [np.full(len(quotient), value) for _, value in choices], np.abs(quotient))
    return np.copysign(magnitude, sign)


@vector("v_div_fixup_f16", "v_div_fixup_legacy_f16", "v_div_fixup_f32", "v_div_fixup_f64")
def build_division_fixup(instruction: Instruction, target: Target) -> Step:
    """Fix up a quotient: sources are quotient, denominator and numerator."""
    kind = instruction.name[-3:]
    inputs, write = sources(instruction, target, (kind,) * 3), destination(instruction, target, kind)
    how, rounding = _DIVISIONS[kind], modes.MODE_OF[kind].rounding

    def step(wave: Wave) -> None:
        if rounding(wave.mode) != modes.NEAREST:
            raise Unmodelled(f"{instruction.name} that is not rounded to nearest")
        quotient, denominator, numerator = (source(wave) for source in inputs)
        write(wave, division_fixup(quotient, denominator, numerator, how))

    return step
