"""Loads and stores in the syntax of LLVM's assembler."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.llvm_operands import NoText, flags, registers, scalar, signed, text, used
from kernelwright.simulator.code.target import Target

Spelled = tuple[str, list[str], list[str]]
_OLD = ("glc", "slc", "scc")  # cache policies of gfx90a
_NEW = ("sc0", "nt", "sc1")  # of gfx940 and newer


def _policies(instruction: Instruction, target: Target) -> list[str]:
    if any(instruction.get(name) for name in ("th", "scope", "nv", "tfe")):
        raise NoText("cache policy")
    names = _OLD if target.instructions == "gfx90a" else _NEW
    # The tables use the names of one family for the bits of both.
    other = dict(zip(_NEW, _OLD, strict=True)) | dict(zip(_OLD, _NEW, strict=True))
    policies = flags(instruction, *_OLD, *_NEW)
    return [name if name in names else other[name] for name in policies]


def local(instruction: Instruction, target: Target) -> Spelled:
    """DS: LDS."""
    if instruction.get("gds"):
        raise NoText("GDS")
    operands = [text(instruction.operands[key], target) for key in used(instruction, "vdst", "addr", "data0", "data1")]
    low, high = instruction.get("offset0"), instruction.get("offset1")
    if "2" in instruction.name.split("_")[1] or "2addr" in instruction.name or "xchg2" in instruction.name:
        modifiers = [f"{key}:{value}" for key, value in (("offset0", low), ("offset1", high)) if value]
    else:
        modifiers = [f"offset:{low | high << 8}"] if low or high else []
    return instruction.name, operands, modifiers


def _address(operand: Operand, base: Operand, target: Target) -> tuple[str, str]:
    """The vector address and the scalar base, or ``off``."""
    off = base.index == (127 if target.cdna else 124)
    if operand.file is not File.VGPR:
        raise NoText("address")
    return registers("v", operand.index, 2 if off else 1), "off" if off else scalar(base.index, 2, target)


def memory(instruction: Instruction, target: Target) -> Spelled:
    """GLOBAL."""
    known = instruction.operands
    vector = known.get("addr") or known["vaddr"]
    address, base = _address(vector, known["saddr"], target)
    data = [text(known[key], target) for key in used(instruction, "data", "vsrc")]
    made = [text(known["vdst"], target)] if "vdst" in known else []
    if "_lds_" in instruction.name or instruction.get("lds"):
        raise NoText("into LDS")
    key, bits = ("ioffset", 24) if "ioffset" in instruction.fields else ("offset", 13)
    offset = signed(instruction.get(key), bits)
    modifiers = [f"offset:{offset}"] if offset else []
    return instruction.name, [*made, address, *data, base], modifiers + _policies(instruction, target)


def buffer(instruction: Instruction, target: Target) -> Spelled:
    """MUBUF and VBUFFER."""
    known = instruction.operands
    both = instruction.get("offen") and instruction.get("idxen")
    address = registers("v", known["vaddr"].index, 2 if both else 1)
    address = address if instruction.get("offen") or instruction.get("idxen") else "off"
    loads_lds = bool(instruction.get("lds"))
    data = [] if loads_lds or "vdata" not in known else [text(known["vdata"], target)]
    resource = scalar(known["srsrc"].index, 4, target)
    offset = instruction.get("ioffset") or instruction.get("offset")
    modifiers = [*flags(instruction, "idxen", "offen"), *([f"offset:{offset}"] if offset else [])]
    modifiers += _policies(instruction, target) + (["lds"] if loads_lds else [])
    operands = [*data, address, resource, text(known["soffset"], target)]
    return instruction.name, operands, modifiers


def constant(instruction: Instruction, target: Target) -> Spelled:
    """SMEM."""
    known = instruction.operands
    if not instruction.name.startswith(("s_load", "s_buffer_load")):
        raise NoText(instruction.name)
    sizes = {"dword": 1, "b32": 1, "dwordx2": 2, "b64": 2, "b96": 3, "dwordx4": 4, "b128": 4}
    sizes |= {"dwordx8": 8, "b256": 8, "dwordx16": 16, "b512": 16}
    count = sizes.get(instruction.name.rpartition("_")[2])
    if count is None or instruction.get("glc") or instruction.get("nv") or instruction.get("soffset_en"):
        raise NoText(instruction.name)
    base = scalar(known["sbase"].index, 4 if "buffer" in instruction.name else 2, target)
    if target.cdna and not instruction.get("imm"):
        raise NoText("an offset in a register")
    if not target.cdna and known["soffset"].index != 124:
        raise NoText("an offset in a register")
    key, bits = ("ioffset", 24) if "ioffset" in instruction.fields else ("offset", 21)
    offset = signed(instruction.get(key), bits)
    return instruction.name, [scalar(known["sdata"].index, count, target), base, f"{offset:#x}"], []


SPELLED: Mapping[str, Callable[[Instruction, Target], Spelled]] = {
    "DS": local,
    "GLOBAL": memory,
    "VGLOBAL": memory,
    "MUBUF": buffer,
    "VBUFFER": buffer,
    "SMEM": constant,
}
