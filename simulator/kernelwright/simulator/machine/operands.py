"""Readers of operands and values of constants, bound once per static instruction.

A *kind* says how the bits are interpreted: ``u32 i32 f32`` (one register), ``u64 i64 f64`` (a pair), ``u16 i16 f16`` (a
half).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Operand
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.memory import PRIVATE_APERTURE, SHARED_APERTURE
from kernelwright.simulator.machine.registers import VGPRS
from kernelwright.simulator.machine.wave import Wave

DTYPES: dict[str, Any] = {
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
}

# src_shared_base, src_shared_limit, src_private_base and src_private_limit as pairs: apertures of LDS and scratch for
# flat instructions.
APERTURES = {
    235: SHARED_APERTURE << 32,
    236: SHARED_APERTURE << 32 | 0xFFFFFFFF,
    237: PRIVATE_APERTURE << 32,
    238: PRIVATE_APERTURE << 32 | 0xFFFFFFFF,
}


def row_of(operand: Operand) -> int:
    """Row of a vector operand in the wave's register array."""
    return operand.index + (VGPRS if operand.file is File.AGPR else 0)


def constant(operand: Operand, kind: str) -> Any:
    """A constant operand as an instruction of this kind sees it.

    Inline floats take the operand's own width; inline integers are sign-extended; a literal is 32 bits, zero-extended
    for 64-bit integers and the high half for fp64 (RDNA3 ISA guide, "Scalar ALU operands").
    """
    value, dtype = operand.value, DTYPES[kind]
    bits = np.dtype(dtype).itemsize * 8
    if isinstance(value, float):
        as_float: Any = {16: np.float16, 32: np.float32, 64: np.float64}[bits](value)
        return as_float.view(dtype)
    if operand.file is File.LITERAL and kind == "f64":
        value <<= 32
    return np.array(value & ((1 << bits) - 1), f"u{bits // 8}").view(dtype)[()]


def scalar_word(operand: Operand) -> Callable[[Wave], int]:
    """Return a reader of a 32-bit scalar operand as a Python int below 2**32."""
    index = operand.index
    if operand.constant:
        word = operand.word()
        return lambda wave: word
    if operand.file is File.SGPR:
        if index < 124:
            return lambda wave: wave.s[index]
        return lambda wave: wave.read_scalar(index)
    if operand.file is File.SCC:
        return lambda wave: wave.scc
    if operand.file is File.EXECZ:
        return lambda wave: int(wave.exec == 0)
    if operand.file is File.VCCZ:
        return lambda wave: int(wave.read_mask(106) == 0)
    raise Unmodelled(f"{operand.file.name} {operand.index} as a scalar operand")


def scalar_pair(operand: Operand) -> Callable[[Wave], int]:
    """Return a reader of a 64-bit scalar operand as a Python int below 2**64."""
    index = operand.index
    if operand.constant:
        word = int(constant(operand, "u64"))
        return lambda wave: word
    if operand.file is File.SGPR:
        return lambda wave: wave.read_scalar64(index)
    if operand.file is File.SPECIAL and index in APERTURES:
        aperture = APERTURES[index]
        return lambda wave: aperture
    raise Unmodelled(f"{operand.file.name} {operand.index} as a 64-bit scalar operand")
