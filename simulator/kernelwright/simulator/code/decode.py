"""Machine code → :class:`Instruction`, with the instruction tables of the tinygrad wheel (its only user here).

The wheel's tables come from AMD's machine-readable ISA. They have one set per family, so what gfx90a and gfx942 encode
differently from gfx950 is corrected here (LLVM's VOP3PInstructions.td is the source).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kernelwright.simulator.code import gfx90a, matrix_shapes
from kernelwright.simulator.code.encodings import encoding_of, encodings
from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import ObjectError, Unmodelled

_SUFFIXES = ("_e32", "_e64", "_dpp16", "_dpp", "_sdwa")
_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189532}
_SINGLES = {251: File.VCCZ, 252: File.EXECZ, 253: File.SCC}
_DPP8 = (233, 234)
_WITH_LITERAL = ("v_fmaak", "v_fmamk", "v_madak", "v_madmk", "s_setreg_imm32")  # the literal is an operand of its own
_OPSEL_BITS = {"src0": 0, "vsrc0": 0, "src1": 1, "src2": 2, "vdst": 3}
_FAMILIES = {  # names of later families → gfx9's
    "VGLOBAL": "GLOBAL",
    "VFLAT": "FLAT",
    "VSCRATCH": "SCRATCH",
    "VBUFFER": "MUBUF",
    "VOP3PX2": "VOP3P",
    "VOP3SD": "VOP3",
    "VOP3_SDST": "VOP3",
}

# MFMA opcodes whose meaning changed with gfx940 (which reuses them for sparse matrices).
GFX90A_MFMA = {
    0x63: "v_mfma_f32_32x32x4_2b_bf16",
    0x64: "v_mfma_f32_16x16x4_4b_bf16",
    0x65: "v_mfma_f32_4x4x4_16b_bf16",
    0x66: "v_mfma_f32_32x32x8_bf16",
    0x67: "v_mfma_f32_16x16x16_bf16",
    0x68: "v_mfma_f32_32x32x2_2b_bf16_k2",
    0x69: "v_mfma_f32_16x16x2_4b_bf16_k2",
    0x6B: "v_mfma_f32_4x4x2_16b_bf16_k2",
    0x6C: "v_mfma_f32_32x32x4_bf16_k2",
    0x6D: "v_mfma_f32_16x16x8_bf16_k2",
    0x54: "v_mfma_i32_32x32x8_i8",
    0x55: "v_mfma_i32_16x16x16_i8",
}

_MFMA_16X16X16_F16 = 0x4D


def decode(text: bytes, target: Target, start: int, end: int | None = None) -> Iterator[Instruction]:
    """Instructions from byte offset ``start`` of ``text`` to ``end``. Unmodelled for bytes that are no instruction."""
    at, end = start, len(text) if end is None else end
    while at < end:
        instruction = decode_one(text, target, at)
        yield instruction
        at += instruction.size


def decode_one(text: bytes, target: Target, at: int) -> Instruction:
    """The instruction at byte offset ``at``."""
    data = text[at : at + 16]
    if len(data) < 4 or at % 4:
        raise ObjectError(f"there is no instruction at {at:#x}: the text has {len(text)} bytes")
    padded, name = _translated(data.ljust(16, b"\0"), target)
    word = int.from_bytes(padded, "little")
    encoding = encoding_of(word, target.tables)
    if encoding is not None:
        return _convert(_eight_lanes(encoding.from_bytes(padded), padded), name, target, at, word)
    raise Unmodelled(f"{target.name} has no instruction {padded[:4].hex()} (bytes) at {at:#x}")


def known_names(target: Target) -> dict[str, tuple[str, ...]]:
    """Family of encodings (``VOP3``, ``DS``, …) → names of its instructions on the target's family of chips.

    The tables have one set per family, so a chip of the family may lack some of the names.
    """
    by_family: dict[str, set[str]] = {}
    for encoding in encodings(target.tables):
        for key, field in encoding._fields:
            if key in ("op", "opx", "opy"):
                family = field._enum.__name__.removesuffix("Op").removesuffix("XOp").removesuffix("YOp")
                names = {_plain(op.name).replace("v_dual_", "v_") for op in field._enum}
                by_family.setdefault(_FAMILIES.get(family, family), set()).update(names)
    return {family: tuple(sorted(names)) for family, names in sorted(by_family.items())}


def _eight_lanes(inst: Any, data: bytes) -> Any:
    """The instruction in its DPP8 form if src0 says so, which the wheel's decoder does not check."""
    kind = type(inst)
    source = getattr(inst, "src0", None)
    if source is None or int(getattr(source, "offset", 0)) not in _DPP8:
        return inst
    form = getattr(importlib.import_module(kind.__module__), f"{kind.__name__}_DPP8", None)
    return inst if form is None else form.from_bytes(data)


def _translated(data: bytes, target: Target) -> tuple[bytes, str | None]:
    """gfx90a's own instructions under an opcode of the same form that the tables contain, and their names."""
    if target.instructions != "gfx90a":
        return data, None
    name = GFX90A_MFMA.get(data[2] & 0x7F) if data[2] >> 7 and data[3] == 0xD3 else None
    if name is None:
        return gfx90a.translated(data)
    return data[:2] + bytes([0x80 | _MFMA_16X16X16_F16]) + data[3:], name


def _convert(inst: Any, name: str | None, target: Target, pc: int, raw: int) -> Instruction:
    encoding = type(inst).__name__
    literal = getattr(inst, "literal", None)
    if encoding.startswith("VOPD"):
        return _dual(inst, target, pc, literal)
    name = name or _name(inst)
    operands, fields = {}, {}
    formats = inst.operands
    for key, _ in type(inst)._fields:
        value = getattr(inst, key)
        if hasattr(value, "offset") and hasattr(value, "sz"):
            if _unused(encoding, key, formats):
                continue
            operands[key] = _operand(inst, key, value, formats, literal, raw)
        elif key not in ("op", "encoding", "literal", "seg", "x2encoding"):
            fields[key] = int(value)
    if name.startswith(_WITH_LITERAL) and literal is not None:
        operands["literal"] = _register(255, 0, "ANY", 32, literal, False)
    _choose_halves(encoding, operands, fields.get("opsel", 0), target)
    if encoding == "VBUFFER":  # its resource is a plain number in the tables
        operands["srsrc"] = Operand(File.SGPR, fields.pop("rsrc"), 4, "RSRC", 128)
    silent = "atomic" in name and not any((fields.get("sc0"), fields.get("glc"), fields.get("th", 0) & 1))
    if silent or "_load_lds_" in name:
        operands.pop("vdst", None)
    shape = matrix_shapes.find(name, target.instructions)
    if shape is not None:  # the tables have the counts of one family only
        for key, operand in operands.items():
            if not operand.constant:
                operands[key] = replace(operand, count=shape.registers[key])
    return Instruction(pc, inst.size(), encoding, name, operands, fields)


def _choose_halves(encoding: str, operands: dict[str, Operand], opsel: int, target: Target) -> None:
    """Select the register half of a 16-bit operand: by opsel in VOP3, by bit 7 of the number elsewhere on RDNA."""
    selected = encoding.startswith("VOP3") and not encoding.startswith(("VOP3P", "VOP3SD"))
    numbered = not target.cdna and encoding.startswith(("VOP1", "VOP2", "VOPC"))
    for key, operand in operands.items():
        if operand.bits != 16:
            continue
        if selected and opsel >> _OPSEL_BITS[key] & 1:
            operands[key] = replace(operand, high=True)
        elif numbered and operand.file is File.VGPR and operand.index >= 128:
            operands[key] = replace(operand, index=operand.index - 128, high=True)


def _unused(encoding: str, key: str, formats: dict[str, Any]) -> bool:
    """Whether an operand is unused: memory encodings have data fields that most of their instructions ignore."""
    memory = encoding.removeprefix("V") in ("DS", "FLAT", "GLOBAL", "SCRATCH")
    return memory and key in ("vdst", "data", "data0", "data1", "vsrc") and key not in formats


def _name(inst: Any) -> str:
    name = _plain(inst.op.name)
    return name


def _plain(name: str) -> str:
    name = name.lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _operand(inst: Any, key: str, reg: Any, formats: dict[str, Any], literal: int | None, raw: int) -> Operand:
    canonical = key
    if key not in formats:  # the tables list some first sources under the name that DPP gives them
        canonical = {"vsrc0": "src0", "vsrc1": "src1", "src0": "vsrc0", "src1": "vsrc1"}.get(key, key)
    form, bits = "ANY", 32 * int(reg.sz)
    if canonical in formats:
        form = formats[canonical][0].name.removeprefix("FMT_").removeprefix("NUM_")
        bits = int(inst.op_bits[canonical])
    accumulator = _is_accumulator(inst, key)
    return _register(int(reg.offset), max(1, bits // 32), form, bits, literal, accumulator)


def _register(offset: int, count: int, form: str, bits: int, literal: int | None, accumulator: bool) -> Operand:
    if offset >= 256:
        return Operand(File.AGPR if accumulator else File.VGPR, offset - 256, count, form, bits)
    if offset < 128:
        return Operand(File.SGPR, offset, count, form, bits)
    if offset <= 208:
        return Operand(File.INLINE, 0, 0, form, bits, offset - 128 if offset <= 192 else 192 - offset)
    if offset in _FLOATS:
        return Operand(File.INLINE, 0, 0, form, bits, _FLOATS[offset])
    if offset == 255:
        if literal is None:
            raise Unmodelled("a literal constant in an encoding that has none")
        return Operand(File.LITERAL, 0, 0, form, bits, literal)
    return Operand(_SINGLES.get(offset, File.SPECIAL), offset, 0, form, bits)


def _is_accumulator(inst: Any, key: str) -> bool:
    """Whether an operand is an AGPR, by bits beside it: acc_cd for C and D, acc for A and B or memory data."""
    encoding = type(inst).__name__
    if encoding in ("VOP3P_MFMA", "VOP3PX2"):
        if key in ("vdst", "src2"):
            return bool(inst.acc_cd)
        return bool(inst.acc >> {"src0": 0, "src1": 1}.get(key, 2) & 1)
    return key in ("vdst", "vdata", "data", "data0", "data1") and bool(getattr(inst, "acc", 0))


def _dual(inst: Any, target: Target, pc: int, literal: int | None) -> Instruction:
    halves = []
    for side, op in (("x", inst.opx), ("y", inst.opy)):
        operands = {
            key: _register(int(getattr(inst, field).offset), 1, "ANY", 32, literal, False)
            for key, field in (("vdst", f"vdst{side}"), ("src0", f"src{side}0"), ("vsrc1", f"vsrc{side}1"))
        }
        name = op.name.lower().removeprefix("v_dual_")
        if name in ("fmaak_f32", "fmamk_f32"):
            operands["literal"] = _register(255, 1, "F32", 32, literal, False)
        halves.append(Instruction(pc, inst.size(), "VOPD", f"v_{name}", operands))
    return Instruction(pc, inst.size(), "VOPD", "v_dual", parts=tuple(halves))
