"""Conversions between numbers of different types: lane by lane, one number in and one or two out.

Floats become integers by truncation with saturation, NaN becomes 0 (CDNA3 ISA guide, "V_CVT_I32_F32"); fp16 results
round and flush as the fp16 mode says, which NumPy does itself in the usual mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import Op, bind, lanewise, vector
from kernelwright.simulator.instructions.vector.operands import sources
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES
from kernelwright.simulator.machine.wave import Wave


def saturate(values: Any, kind: str) -> Any:
    """Floats that are whole numbers, infinite or NaN → integers of ``kind``."""
    limits = np.iinfo(DTYPES[kind])
    wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(wide, limits.min, limits.max).astype(limits.dtype)


def truncated(kind: str) -> Callable[[Any], Any]:
    """Conversion to an integer kind by truncation."""
    return lambda values: saturate(np.trunc(values), kind)


def _nearest_up(values: Any) -> Any:
    """floor(x + 0.5), exact in float64 for every fp32."""
    return saturate(np.floor(values.astype(np.float64) + 0.5), "i32")


def _byte(place: int) -> Callable[[Any], Any]:
    shift, mask = np.uint32(8 * place), np.uint32(255)
    return lambda words: (words >> shift & mask).astype(np.float32)


def _offset(words: Any) -> Any:
    """The low 4 bits as a signed number, in sixteenths."""
    return (((words ^ np.uint32(8)) & np.uint32(15)).astype(np.float32) - np.float32(8)) / np.float32(16)


TO_INTEGER = {
    "v_cvt_u32_f32": Op(truncated("u32"), "u32", ("f32",)),
    "v_cvt_i32_f32": Op(truncated("i32"), "i32", ("f32",)),
    "v_cvt_u32_f64": Op(truncated("u32"), "u32", ("f64",)),
    "v_cvt_i32_f64": Op(truncated("i32"), "i32", ("f64",)),
    "v_cvt_u16_f16": Op(truncated("u16"), "u16", ("f16",)),
    "v_cvt_i16_f16": Op(truncated("i16"), "i16", ("f16",)),
    "v_cvt_flr_i32_f32": Op(lambda a: saturate(np.floor(a), "i32"), "i32", ("f32",)),
    "v_cvt_floor_i32_f32": Op(lambda a: saturate(np.floor(a), "i32"), "i32", ("f32",)),
    "v_cvt_rpi_i32_f32": Op(_nearest_up, "i32", ("f32",)),
    "v_cvt_nearest_i32_f32": Op(_nearest_up, "i32", ("f32",)),
    "v_cvt_i32_i16": Op(lambda a: a.astype(np.int32), "i32", ("i16",)),
    "v_cvt_u32_u16": Op(lambda a: a.astype(np.uint32), "u32", ("u16",)),
}

EXACT = {
    "v_cvt_f64_i32": Op(lambda a: a.astype(np.float64), "f64", ("i32",)),
    "v_cvt_f64_u32": Op(lambda a: a.astype(np.float64), "f64", ("u32",)),
    "v_cvt_f32_bf16": Op(lambda a: (a.astype(np.uint32) << np.uint32(16)).view(np.float32), "f32", ("u16",)),
    "v_cvt_off_f32_i4": Op(_offset, "f32", ("u32",)),
} | {f"v_cvt_f32_ubyte{place}": Op(_byte(place), "f32", ("u32",)) for place in range(4)}

lanewise(TO_INTEGER)
lanewise(EXACT)

# name → (kind of the result, kind of the source): conversions that may round, or affect denormals
_ROUNDED = {
    "v_cvt_f32_u32": ("f32", "u32"),
    "v_cvt_f32_i32": ("f32", "i32"),
    "v_cvt_f16_u16": ("f16", "u16"),
    "v_cvt_f16_i16": ("f16", "i16"),
    "v_cvt_f16_f32": ("f16", "f32"),
    "v_cvt_f32_f16": ("f32", "f16"),
    "v_cvt_f32_f64": ("f32", "f64"),
    "v_cvt_f64_f32": ("f64", "f32"),
}


@vector(*_ROUNDED)
def build_rounded(instruction: Instruction, target: Target) -> Step:
    """Conversions to floats, in the modes of both types."""
    result, kind = _ROUNDED[instruction.name]
    (source,) = sources(instruction, target, (kind,))
    write, dtype = destination(instruction, target, result), DTYPES[result]
    watched = modes.MODE_OF[result].mask | (modes.MODE_OF[kind].mask if kind in modes.MODE_OF else 0)
    usual = watched & 0xF0  # nearest even, denormals kept

    def step(wave: Wave) -> None:
        value = source(wave)
        if wave.mode & watched == usual:
            write(wave, value.astype(dtype))
        else:
            write(wave, convert(value, kind, result, wave.mode))

    return step


def convert(value: Any, kind: str, result: str, mode: int) -> Any:
    """One conversion to a float kind, by the rounding and denormal modes."""
    modes.refuse_saturation(mode, result)
    if kind in modes.MODE_OF and not modes.MODE_OF[kind].keeps_inputs(mode):
        value = modes.flush(value)
    wanted = modes.MODE_OF[result]
    narrow: Any = modes.narrow(value.astype(np.float64), DTYPES[result], wanted.rounding(mode))
    return narrow if wanted.keeps_outputs(mode) else modes.flush(narrow)


def to_bfloat16(values: Any) -> Any:
    """fp32 → bf16 bits, to nearest even; NaNs stay NaNs (quiet)."""
    bits = values.view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))
    nan = np.isnan(values)
    if np.count_nonzero(nan):
        rounded = np.where(nan, bits | np.uint32(0x400000), rounded)
    return rounded >> np.uint32(16)


def pack(low: Any, high: Any) -> Any:
    """Pack two halves, as uint32 or 16-bit arrays, into one word."""
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def _clip_to(kind: str) -> Callable[[Any, Any], Any]:
    limits, bits = np.iinfo(DTYPES[kind]), f"u{DTYPES[kind]().itemsize}"

    def one(values: Any) -> Any:
        return np.clip(values.astype(np.int64), limits.min, limits.max).astype(limits.dtype).view(bits)

    return lambda a, b: pack(one(a), one(b))


def _normalised(kind: str) -> Callable[[Any, Any], Any]:
    """Fractions of one → integers of the full range, to nearest even."""
    limits = np.iinfo(DTYPES[kind])
    low = 0.0 if limits.min == 0 else -1.0

    def one(values: Any) -> Any:
        unit = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), low, 1.0)
        return np.rint(unit * limits.max).astype(limits.dtype).view(np.uint16)

    return lambda a, b: pack(one(a), one(b))


def _pack_floats(kind: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: pack(truncated(kind)(a).view(np.uint16), truncated(kind)(b).view(np.uint16))


def _saturated_bytes(first: Any, second: Any, least: int, most: int) -> Any:
    low, high = (np.clip(values, least, most).astype(np.int32) & 0xFF for values in (first, second))
    return (low | high << 8).astype(np.uint16)


def _shifted_bytes(least: int, most: int) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, shift: _saturated_bytes(a >> shift, b >> shift, least, most)


def _halves_to_bytes(words: Any) -> Any:
    halves = words.view(np.int16)
    return _saturated_bytes(halves[::2], halves[1::2], 0, 255)


def _normalised_half(kind: str) -> Callable[[Any], Any]:
    both = _normalised(kind)
    return lambda values: both(values, values).astype(np.uint16)


BYTES = {
    "v_ashr_pk_i8_i32": Op(_shifted_bytes(-128, 127), "u16", ("i32", "i32", "i5")),
    "v_ashr_pk_u8_i32": Op(_shifted_bytes(0, 255), "u16", ("i32", "i32", "i5")),
    "v_sat_pk_u8_i16": Op(_halves_to_bytes, "u16", ("u32",)),
    "v_cvt_norm_i16_f16": Op(_normalised_half("i16"), "u16", ("f16",)),
    "v_cvt_norm_u16_f16": Op(_normalised_half("u16"), "u16", ("f16",)),
}
lanewise(BYTES)


def to_half_toward_zero(values: Any) -> Any:
    """fp32 → fp16 toward zero: overflow gives the largest fp16, but infinities stay."""
    return modes.narrow(values.astype(np.float64), np.float16, modes.ZERO)


def _toward_zero_pair(a: Any, b: Any) -> Any:
    return pack(to_half_toward_zero(a).view(np.uint16), to_half_toward_zero(b).view(np.uint16))


PACKING = {
    "v_cvt_pk_i16_i32": Op(_clip_to("i16"), "u32", ("i32", "i32")),
    "v_cvt_pk_u16_u32": Op(_clip_to("u16"), "u32", ("u32", "u32")),
    "v_cvt_pk_i16_f32": Op(_pack_floats("i16"), "u32", ("f32", "f32")),
    "v_cvt_pk_u16_f32": Op(_pack_floats("u16"), "u32", ("f32", "f32")),
    "v_pack_b32_f16": Op(lambda a, b: pack(a.view(np.uint16), b.view(np.uint16)), "u32", ("f16", "f16")),
}
for _kind in ("i16", "u16"):
    for _source in ("f16", "f32"):
        _op = Op(_normalised(_kind), "u32", (_source, _source))
        PACKING |= {f"v_cvt_pknorm_{_kind}_{_source}": _op, f"v_cvt_pk_norm_{_kind}_{_source}": _op}

lanewise(PACKING)


_KEPT = 0xF0 | modes.OVERFLOW  # if only the denormals' bits are set, NumPy does it


@vector("v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32", "v_cvt_pk_f16_f32")
def build_pack_half(instruction: Instruction, target: Target) -> Step:
    """Two fp16 in one word, toward zero or to nearest even whatever the mode; only denormals follow it."""
    inputs = sources(instruction, target, ("f32", "f32"))
    rounding = modes.NEAREST if instruction.name == "v_cvt_pk_f16_f32" else modes.ZERO
    write = destination(instruction, target, "u32")
    if rounding == modes.ZERO:
        usual: Callable[[Any, Any], Any] = _toward_zero_pair
    else:
        usual = lambda a, b: pack(a.astype(np.float16).view(np.uint16), b.astype(np.float16).view(np.uint16))  # noqa: E731
    plain = bind(usual, inputs, write)

    def step(wave: Wave) -> None:
        if wave.mode & _KEPT == 0xF0:
            plain(wave)
            return
        shift = modes.OTHER.round_shift
        mode = wave.mode & ~(3 << shift) | rounding << shift
        halves = [convert(source(wave), "f32", "f16", mode).view(np.uint16) for source in inputs]
        write(wave, pack(*halves))

    return step


@vector("v_cvt_pk_bf16_f32")
def build_pack_bfloat16(instruction: Instruction, target: Target) -> Step:
    """Two bf16 in one word, to nearest even. Unmodelled if fp32 denormals are flushed."""
    first, second = sources(instruction, target, ("f32", "f32"))
    write, upper = destination(instruction, target, "u32"), np.uint32(16)

    def step(wave: Wave) -> None:
        if wave.mode & modes.SINGLE.plain != modes.SINGLE.plain:
            raise Unmodelled(f"{instruction.name} with flushed denormals")
        write(wave, to_bfloat16(first(wave)) | to_bfloat16(second(wave)) << upper)

    return step
