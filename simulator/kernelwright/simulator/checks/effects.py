"""The registers that one static instruction reads and writes, derived from its operands and its name.

The checks and the trace use them; semantics do not. Vector registers are rows of the wave's array, scalar registers are
numbers of scalar operands. EXEC, SCC and null are omitted: they are always set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.registers import EXEC, VCC

_RESULTS = {"vdst", "sdst"}
_MEMORY = ("DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "VFLAT", "VGLOBAL", "VSCRATCH", "VBUFFER")
_ADD_TO_RESULT = ("v_fmac", "v_mac_", "v_pk_fmac", "v_dot2c", "v_dot4c", "v_dot8c", "v_dot2acc", "s_fmac")
_PART_OF_RESULT = ("s_cmov", "s_bitset", "s_addk", "s_mulk", "s_cmpk", "s_addk_co", "s_setreg_b32")
_NO_RESULT = ("s_cmpk", "s_setreg")  # their sdst is a source
_ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "v_accvgpr_read": ("src0",),
    "v_accvgpr_write": ("vdst",),
    "v_accvgpr_mov_b32": ("vdst", "src0"),
}
_EXCHANGES = ("v_swap", "v_permlane16_swap", "v_permlane32_swap")
_CARRY_IN = ("v_addc", "v_subb", "v_add_co_ci", "v_sub_co_ci", "v_subrev_co_ci", "v_cndmask")
_CARRY_OUT = ("v_add_co", "v_sub_co", "v_subrev_co", "v_addc", "v_subb")
_ONE_SOURCE = ("v_mov_b32",)  # in VOPD, whose encoding always has a second source


@dataclass(frozen=True)
class Effects:
    """Rows and numbers, without duplicates.

    ``data``: rows that a store reads, in memory order. ``loads``: whether it fills ``vector_writes`` or
    ``scalar_writes`` from memory.
    """

    vector_reads: tuple[int, ...] = ()
    vector_writes: tuple[int, ...] = ()
    scalar_reads: tuple[int, ...] = ()
    scalar_writes: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    loads: bool = False


def effects(instruction: Instruction, target: Target) -> Effects:
    """The registers that the instruction reads and writes."""
    per_part = [_of(part, target) for part in instruction.parts or (instruction,)]
    if len(per_part) == 1:
        return per_part[0]
    first, second = per_part
    return Effects(
        _unique(first.vector_reads + second.vector_reads),
        _unique(first.vector_writes + second.vector_writes),
        _unique(first.scalar_reads + second.scalar_reads),
        _unique(first.scalar_writes + second.scalar_writes),
    )


def is_memory(instruction: Instruction) -> bool:
    """Whether it is a vector memory or LDS instruction."""
    return instruction.encoding in _MEMORY


def _of(instruction: Instruction, target: Target) -> Effects:
    collect = _Collector(target)
    if is_memory(instruction):
        return _memory(instruction, collect)
    if instruction.encoding == "SMEM":
        for key in ("sbase", "soffset"):
            if not _ignored(instruction, key, target):
                collect.read(instruction.operands[key])
        if "sdata" in instruction.operands:
            collect.write(instruction.operands["sdata"])
        return collect.effects(loads=True)
    for key, given in instruction.operands.items():
        operand = _accumulator(instruction, key, given)
        if operand.form == "ANY" and instruction.encoding.startswith("SOP"):
            continue  # a field that this instruction does not use
        if key in _RESULTS:
            result = _scalar_result(instruction, operand)
            if not instruction.name.startswith(_NO_RESULT):
                collect.write(result)
            if instruction.name.startswith(_ADD_TO_RESULT + _PART_OF_RESULT):
                collect.read(result)
        elif not _ignored(instruction, key, target):
            collect.read(_source(instruction, key, operand))
    _implied(instruction, collect, target)
    return collect.effects()


def _scalar_result(instruction: Instruction, operand: Operand) -> Operand:
    """The scalar result of instructions whose VOP1 encoding names it as if it were a vector register."""
    if instruction.name in ("v_readfirstlane_b32", "v_readlane_b32") and operand.file is File.VGPR:
        return Operand(File.SGPR, operand.index)
    return operand


def _accumulator(instruction: Instruction, key: str, operand: Operand) -> Operand:
    """The AGPR operand of moves from and to AGPRs, which name it as if it were a VGPR."""
    moved = _ACCUMULATORS.get(instruction.name, ())
    return Operand(File.AGPR, operand.index) if key in moved and operand.file is File.VGPR else operand


def _source(instruction: Instruction, key: str, operand: Operand) -> Operand:
    if instruction.name.endswith("f8f6f4") and key in ("src0", "src1"):
        kind = instruction.get("cbsz" if key == "src0" else "blgp")
        return Operand(operand.file, operand.index, {0: 8, 1: 8, 2: 6, 3: 6}.get(kind, 4))
    if "SDWA" in instruction.encoding and instruction.get(f"s{key[-1]}") and operand.file is File.VGPR:
        return Operand(File.SGPR, operand.index, operand.count)
    return operand


def _ignored(instruction: Instruction, key: str, target: Target) -> bool:
    """Whether the field is used only by other instructions of the encoding."""
    encoding, operand = instruction.encoding, instruction.operands[key]
    if encoding.startswith("VOP3") and key.startswith("src") and operand.form == "ANY":
        return True
    if encoding == "VOPD" and key == "vsrc1":
        return instruction.name in _ONE_SOURCE
    if encoding == "SMEM" and key == "soffset" and target.cdna:
        return not instruction.get("soffset_en")
    return False


def _implied(instruction: Instruction, collect: _Collector, target: Target) -> None:
    name, encoding = instruction.name, instruction.encoding
    mask = Operand(File.SGPR, VCC, target.lanes // 32)
    short = encoding.startswith(("VOP2", "VOPD"))
    if name.startswith("v_div_fmas") or (short and name.startswith(_CARRY_IN)):
        collect.read(mask)
    if short and name.startswith(_CARRY_OUT) and "nc" not in name:
        collect.write(mask)
    elsewhere = name.startswith("v_cmpx") or ("SDWA" in encoding and instruction.get("sd"))
    if encoding.startswith("VOPC") and "sdst" not in instruction.operands and not elsewhere:
        collect.write(mask)
    if name.startswith(_EXCHANGES):
        collect.read(instruction.operands["vdst"])
        collect.write(instruction.operands["src0"])
    if name == "v_writelane_b32":
        collect.vector_reads.clear()


def _memory(instruction: Instruction, collect: _Collector) -> Effects:
    name, operands, target = instruction.name, instruction.operands, collect.target
    stores = re.search("_(store|write)(_|2)", name) is not None
    atomic = not stores and ("atomic" in name or not _loads(name))
    data: list[int] = []
    for key, operand in operands.items():
        if key in ("vdst", "vdata", "data", "vsrc", "data0", "data1"):
            result = key == "vdst" or (key == "vdata" and not stores and not atomic)
            if result and not instruction.get("lds"):
                collect.write(operand)
            elif not result:
                data += collect.read(operand)
                if key == "vdata" and atomic and _returns(instruction):
                    collect.write(operand)
        elif key in ("saddr", "soffset", "srsrc"):
            if not (key == "saddr" and _off(operand, target)):
                collect.read(operand)
        else:
            collect.read(_address(instruction, operand, target))
    if instruction.get("lds") or "_load_lds_" in name:
        collect.read(Operand(File.SGPR, target.m0))
    return collect.effects(tuple(data), loads=not stores)


def _returns(instruction: Instruction) -> bool:
    return bool(instruction.get("glc") or instruction.get("sc0") or instruction.get("th") & 1)


def _loads(name: str) -> bool:
    return any(word in name for word in ("load", "read", "permute", "swizzle"))


def _off(operand: Operand, target: Target) -> bool:
    return operand.file is not File.SGPR or operand.index in (target.null, 127)


def _address(instruction: Instruction, operand: Operand, target: Target) -> Operand:
    """Global addresses are pairs without a scalar base, offsets otherwise; buffers have an index, an offset or both."""
    encoding = instruction.encoding.removeprefix("V")
    if encoding in ("BUFFER", "MUBUF"):
        count = instruction.get("offen") + instruction.get("idxen")
        return Operand(operand.file, operand.index, count) if count else Operand(File.INLINE)
    if encoding == "FLAT" or (encoding == "GLOBAL" and _off(instruction.operands["saddr"], target)):
        return Operand(operand.file, operand.index, 2)
    if encoding == "SCRATCH" and not instruction.get("sve", int(_off(instruction.operands["saddr"], target))):
        return Operand(File.INLINE)
    return Operand(operand.file, operand.index, 1)


class _Collector:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.vector_reads: list[int] = []
        self.vector_writes: list[int] = []
        self.scalar_reads: list[int] = []
        self.scalar_writes: list[int] = []

    def read(self, operand: Operand) -> list[int]:
        return self._add(operand, self.vector_reads, self.scalar_reads)

    def write(self, operand: Operand) -> list[int]:
        return self._add(operand, self.vector_writes, self.scalar_writes)

    def _add(self, operand: Operand, vectors: list[int], scalars: list[int]) -> list[int]:
        if operand.file in (File.VGPR, File.AGPR):
            rows = list(range(row_of(operand), row_of(operand) + operand.count))
            vectors += rows
            return rows
        if operand.file is File.SGPR:
            last = min(operand.index + operand.count, EXEC)
            scalars += [number for number in range(operand.index, last) if number != self.target.null]
        return []

    def effects(self, data: tuple[int, ...] = (), loads: bool = False) -> Effects:
        return Effects(
            _unique(tuple(self.vector_reads)),
            _unique(tuple(self.vector_writes)),
            _unique(tuple(self.scalar_reads)),
            _unique(tuple(self.scalar_writes)),
            data,
            loads,
        )


def _unique(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))
