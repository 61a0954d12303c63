"""Scalar fp32 arithmetic, comparisons and conversions (gfx12): one value per wave, rounded as the MODE register says.

Sums, products and fused products are exact or rounded to odd in float64, so that each result is rounded to fp32 once.
Denormals follow MODE too. RDNA4 ISA guide, "Scalar floating point"; NaNs of conversions become 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.scalar.operands import M32, destination, signed32, source
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import scalar_word
from kernelwright.simulator.machine.wave import Wave

Wide = Callable[[Any, Any], Any]


def _number(a: Any, b: Any, pick: Callable[[Any, Any], Any]) -> Any:
    """IEEE 754-2019 minimumNumber and maximumNumber: a number wins over a NaN."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, pick(a, b)))


def _smaller(a: Any, b: Any) -> Any:
    return np.where((a < b) | ((a == b) & np.signbit(a)), a, b)


def _larger(a: Any, b: Any) -> Any:
    return np.where((a > b) | ((a == b) & np.signbit(b)), a, b)


ARITHMETIC: dict[str, Wide] = {
    "s_add_f32": modes.odd_sum,
    "s_sub_f32": lambda a, b: modes.odd_sum(a, -b),
    "s_mul_f32": np.multiply,
    "s_min_num_f32": lambda a, b: _number(a, b, _smaller),
    "s_max_num_f32": lambda a, b: _number(a, b, _larger),
}
ROUND: dict[str, Callable[[Any], Any]] = {
    "s_ceil_f32": np.ceil,
    "s_floor_f32": np.floor,
    "s_trunc_f32": np.trunc,
    "s_rndne_f32": np.rint,
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: a < b or a > b,
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: a == a and b == b,
    "u": lambda a, b: a != a or b != b,
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: not a < b,
}
_FROM_FLOAT = {"s_cvt_i32_f32": (-(1 << 31), (1 << 31) - 1), "s_cvt_u32_f32": (0, M32)}
_TO_FLOAT: dict[str, Callable[[int], int]] = {"s_cvt_f32_i32": signed32, "s_cvt_f32_u32": int}


def _read(wave: Wave, word: int) -> Any:
    """Read the fp32 in a word as float64 (1,); a denormal is flushed if MODE says so."""
    value = np.array([word], np.uint32).view(np.float32)
    if not modes.SINGLE.keeps_inputs(wave.mode):
        value = modes.flush(value)
    return value.astype(np.float64)


def _word(wave: Wave, wide: Any) -> int:
    """float64 (1,) rounded once to fp32, as a word."""
    value = modes.narrow(wide, np.float32, modes.SINGLE.rounding(wave.mode))
    if not modes.SINGLE.keeps_outputs(wave.mode):
        value = modes.flush(value)
    return int(value.view(np.uint32)[0])


@semantics(*ARITHMETIC, kind="scalar")
def build_arithmetic(instruction: Instruction, target: Target) -> Step:
    """Sum, difference, product, minimum, maximum."""
    function, write = ARITHMETIC[instruction.name], destination(instruction, 32)
    first, second = source(instruction, "ssrc0", 32), source(instruction, "ssrc1", 32)
    return lambda wave: write(wave, _word(wave, function(_read(wave, first(wave)), _read(wave, second(wave)))))


@semantics("s_fmac_f32", kind="scalar")
def build_multiply_add(instruction: Instruction, target: Target) -> Step:
    """The destination plus a product, rounded once."""
    first, second = source(instruction, "ssrc0", 32), source(instruction, "ssrc1", 32)
    old, write = scalar_word(instruction.operands["sdst"]), destination(instruction, 32)

    def step(wave: Wave) -> None:
        write(wave, _word(wave, modes.fused(*(_read(wave, read(wave)) for read in (first, second, old)))))

    return step


@semantics(*ROUND, kind="scalar")
def build_round(instruction: Instruction, target: Target) -> Step:
    """Round to a whole number."""
    function, read, write = ROUND[instruction.name], source(instruction, "ssrc0", 32), destination(instruction, 32)
    return lambda wave: write(wave, _word(wave, function(_read(wave, read(wave)))))


@semantics(*(f"s_cmp_{name}_f32" for name in COMPARE), kind="scalar")
def build_compare(instruction: Instruction, target: Target) -> Step:
    """SCC = a ? b."""
    function = COMPARE[instruction.name.split("_")[2]]
    first, second = source(instruction, "ssrc0", 32), source(instruction, "ssrc1", 32)

    def step(wave: Wave) -> None:
        wave.scc = int(function(float(_read(wave, first(wave))[0]), float(_read(wave, second(wave))[0])))

    return step


@semantics(*_TO_FLOAT, kind="scalar")
def build_from_integer(instruction: Instruction, target: Target) -> Step:
    """Convert an integer to fp32."""
    convert = _TO_FLOAT[instruction.name]
    read, write = source(instruction, "ssrc0", 32), destination(instruction, 32)
    return lambda wave: write(wave, _word(wave, np.array([convert(read(wave))], np.float64)))


@semantics(*_FROM_FLOAT, kind="scalar")
def build_to_integer(instruction: Instruction, target: Target) -> Step:
    """Convert to an integer, truncated and saturated; 0 for a NaN."""
    low, high = _FROM_FLOAT[instruction.name]
    read, write = source(instruction, "ssrc0", 32), destination(instruction, 32)

    def step(wave: Wave) -> None:
        (value,) = struct.unpack("<f", struct.pack("<I", read(wave)))
        whole = 0 if value != value else int(min(max(value, low), high))
        write(wave, whole & M32)

    return step
