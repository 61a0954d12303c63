"""Clocks for which a matrix instruction occupies the matrix core of its SIMD.

Sources: AMD's matrix instruction calculator (ROCm/amd_matrix_instruction_calculator, 2ef91896, field ``cycles``) for
gfx90a, gfx942 and RDNA; LLVM's SISchedule (passes of four clocks) and rocm-origami 0.0.3 (INSTRUCTION_MAP) for gfx950,
whose int8 instructions are LLVM's alone. For gfx90a's bf16, where origami says 32, the calculator's 64 is taken.
"""

from __future__ import annotations

from kernelwright.simulator.code.instruction import Instruction

_FULL = {"32x32x8": 32, "16x16x16": 16}  # 16-bit operands at gfx942's rate
_BYTES = {"32x32x16": 32, "16x16x32": 16}  # 8-bit ones
_SINGLE = {"32x32x2": 64, "16x16x4": 32}
_HALF = {"32x32x8": 64, "16x16x16": 32}
_DOUBLE = {**_FULL, "32x32x16": 32, "16x16x32": 16}
_CDNA: dict[str, dict[str, dict[str, int]]] = {
    "gfx90a": {
        "f32": _SINGLE,
        **dict.fromkeys(("f16", "bf16", "i8"), _HALF),
    },
    "gfx942": {
        "f32": _SINGLE,
        **dict.fromkeys(("f16", "bf16"), _FULL),
        **dict.fromkeys(("i8", "fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"), _BYTES),
    },
    "gfx950": {
        "f32": _SINGLE,
        **dict.fromkeys(("f16", "bf16"), _DOUBLE),
        **dict.fromkeys(("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"), _BYTES),
        "i8": {**_BYTES, "32x32x32": 32, "16x16x64": 16},
        "f8f6f4": {"32x32x64": 64, "16x16x128": 32},
    },
}
_RDNA = {
    "gfx1100": {"f16": 32, "bf16": 32, "iu8": 32},
    "gfx1201": {
        **{"f16": 16, "bf16": 16, "iu8": 8},
        **dict.fromkeys(("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"), 8),
    },
}
_NARROW = (2, 3, 4)  # cbsz and blgp: fp6, bf6 and fp4, at twice the rate of 8 bits


def matrix_cycles(instruction: Instruction, instructions: str) -> int | None:
    """Clocks of one MFMA or WMMA of an instruction set such as ``gfx942``; None if no source states them."""
    _, kind, _, shape, *operands = instruction.name.split("_", 4)
    dtype = "_".join(operands)
    if kind == "wmma":
        return _RDNA.get(instructions, {}).get(dtype) if shape == "16x16x16" else None
    cycles = _CDNA.get(instructions, {}).get(dtype, {}).get(shape)
    if dtype == "f8f6f4" and cycles and all(instruction.get(field) in _NARROW for field in ("cbsz", "blgp")):
        return cycles // 2
    return cycles
