"""Instructions in the syntax of LLVM's assembler, which reproduces the same bytes.

Unknown instructions are printed as their words (``.long``), which assemble to themselves too, with a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from kernelwright.simulator.code import llvm_memory
from kernelwright.simulator.code.decode import known_names
from kernelwright.simulator.code.instruction import File, Instruction, Operand
from kernelwright.simulator.code.llvm_operands import NoText, registers, scalar, signed, text, used
from kernelwright.simulator.code.target import TARGETS, Target

_BRANCHES = ("s_branch", "s_cbranch_")
_BARE = ("s_endpgm", "s_barrier", "s_code_end", "s_icache_inv")
_OUTPUT_SCALES = {1: "mul:2", 2: "mul:4", 3: "div:2"}
_CARRY_OUT = re.compile(r"v_(?:add|sub|subrev|addc|subb|subbrev|add_ci|sub_ci|subrev_ci)_co_(?:ci_)?u32$")
_CARRY_IN = re.compile(r"v_(?:addc|subb|subbrev|add_co_ci|sub_co_ci|subrev_co_ci)(?:_co)?_u32$")
_ONE_FORM = ("v_readfirstlane", "v_fmaak", "v_fmamk", "v_madak", "v_madmk", "v_swap", "v_nop")
Labels = Mapping[int, str]


def assembly(instruction: Instruction, target: Target, words: bytes, labels: Labels) -> str:
    """Format one line for LLVM's assembler from an instruction and its bytes ``words``.

    ``labels`` name the targets of branches by byte offset; other branches get their distance in words.
    """
    try:
        return _text(instruction, target, labels)
    except NoText:
        listed = ", ".join(f"{int.from_bytes(words[at : at + 4], 'little'):#010x}" for at in range(0, len(words), 4))
        return f".long {listed} // {instruction}"


def branch_target(instruction: Instruction) -> int | None:
    """The byte offset of a branch's target; None for other instructions."""
    if instruction.encoding != "SOPP" or not instruction.name.startswith(_BRANCHES):
        return None
    return instruction.pc + 4 + 4 * signed(instruction.get("simm16"), 16)


def _text(instruction: Instruction, target: Target, labels: Labels) -> str:
    encoding = instruction.encoding.removesuffix("_LIT")
    if encoding == "SOPP":
        return _program(instruction, target, labels)
    if encoding == "VOPD":
        return " :: ".join(_half(part, target) for part in instruction.parts)
    spelled = _SPELLED.get(encoding) or llvm_memory.SPELLED.get(encoding)
    if spelled is None:
        raise NoText(encoding)
    name, operands, modifiers = spelled(instruction, target)
    return " ".join(filter(None, (name, ", ".join(operands), *modifiers)))


Spelled = tuple[str, list[str], list[str]]


def _operands(instruction: Instruction, target: Target, *keys: str) -> list[str]:
    return [text(instruction.operands[key], target) for key in used(instruction, *keys)]


def _program(instruction: Instruction, target: Target, labels: Labels) -> str:
    name, value = instruction.name, instruction.get("simm16")
    goal = branch_target(instruction)
    if goal is not None:
        return f"{name} {labels[goal]}" if goal in labels else f"{name} {value}"
    if name == "s_waitcnt" and target.cdna:
        counts = (
            ("vmcnt", value & 15 | value >> 10 & 48, 63),
            ("expcnt", value >> 4 & 7, 7),
            ("lgkmcnt", value >> 8 & 15, 15),
        )
        if value != sum(
            (count & 15) << at | (count >> 4) << 14 for (_, count, _), at in zip(counts, (0, 4, 8), strict=True)
        ):
            raise NoText(name)
        waited = [f"{word}({count})" for word, count, most in counts if count != most]
        return f"{name} " + " ".join(waited or [f"{word}({count})" for word, count, _ in counts])
    if name.startswith(("s_sendmsg", "s_waitcnt")):
        raise NoText(name)
    if name in _BARE and value == 0:
        return name
    return f"{name} {signed(value, 16) if name == 's_barrier_wait' else value}"


def _scalar(*keys: str) -> Callable[[Instruction, Target], Spelled]:
    def spelled(instruction: Instruction, target: Target) -> Spelled:
        known = instruction.operands
        present = [
            key for key in keys if key in known and not (known[key].form == "ANY" and known[key].file is File.SGPR)
        ]
        return instruction.name, [text(known[key], target) for key in present], []

    return spelled


def _short_constant(instruction: Instruction, target: Target) -> Spelled:
    name, value = instruction.name, instruction.get("simm16")
    register = text(instruction.operands["sdst"], target)
    hardware = f"hwreg({value & 63}, {value >> 6 & 31}, {(value >> 11 & 31) + 1})"
    if name == "s_getreg_b32":
        return name, [register, hardware], []
    if name == "s_setreg_b32":
        return name, [hardware, register], []
    if not name.startswith(("s_movk", "s_cmovk", "s_cmpk", "s_addk", "s_mulk")):
        raise NoText(name)
    return name, [register, f"{value:#x}"], []


@cache
def _short_names(target: str) -> frozenset[str]:
    """Names of instructions with a 32-bit form, beside which VOP3 needs a suffix."""
    known = known_names(TARGETS[target])
    return frozenset(name for family in ("VOP1", "VOP2", "VOPC") for name in known.get(family, ()))


def _check_halves(instruction: Instruction, target: Target) -> None:
    """Raise NoText for 16-bit operands of RDNA, whose register halves LLVM's targets spell in two ways."""
    if not target.cdna and any(one.bits == 16 for one in instruction.operands.values()):
        raise NoText("halves of registers")


def _vector(instruction: Instruction, target: Target) -> Spelled:
    """VOP1 and VOP2."""
    _check_halves(instruction, target)
    name = instruction.name
    mask = scalar(106, 2 if target.cdna else 1, target)
    operands = _operands(instruction, target, "vdst", "src0", "vsrc0", "src1", "vsrc1")
    if name.startswith(("v_fmamk", "v_madmk")):
        operands.insert(2, f"{instruction.operands['literal'].word():#x}")
    elif name.startswith(("v_fmaak", "v_madak")):
        operands.append(f"{instruction.operands['literal'].word():#x}")
    if _CARRY_OUT.match(name) or _CARRY_IN.match(name):
        operands.insert(1, mask)
    if _CARRY_IN.match(name) or name == "v_cndmask_b32":
        operands.append(mask)
    if name == "v_readfirstlane_b32":
        operands[0] = scalar(instruction.operands["vdst"].index, 1, target)  # in the place of a vector register
    if name == "v_nop":
        operands = []
    return name if name.startswith(_ONE_FORM) else f"{name}_e32", operands, []


def _compare(instruction: Instruction, target: Target) -> Spelled:
    _check_halves(instruction, target)
    operands = _operands(instruction, target, "src0", "vsrc1")
    if target.cdna or not instruction.name.startswith("v_cmpx"):
        operands.insert(0, scalar(106, 2 if target.cdna else 1, target))
    return f"{instruction.name}_e32", operands, []


def _long(instruction: Instruction, target: Target) -> Spelled:
    """VOP3 with its modifiers."""
    name = instruction.name
    if instruction.get("opsel"):
        raise NoText("op_sel")
    _check_halves(instruction, target)
    operands = _operands(instruction, target, "vdst", "sdst")
    sources = used(instruction, "src0", "src1", "src2")
    if name.startswith("v_bitop3"):  # its truth table stands where others have modifiers
        table = instruction.get("omod") << 6 | instruction.get("abs") << 3 | instruction.get("neg")
        return name, operands + _operands(instruction, target, *sources), [f"bitop3:{table:#x}"]
    if name.startswith("v_cmpx") and not target.cdna:
        operands = []
    for at, key in enumerate(sources[:1] if name.startswith("v_s_") else sources):
        word = text(instruction.operands[key], target)
        word = f"|{word}|" if instruction.get("abs") >> at & 1 else word
        operands.append(f"-{word}" if instruction.get("neg") >> at & 1 else word)
    modifiers = [_OUTPUT_SCALES[instruction.get("omod")]] if instruction.get("omod") else []
    modifiers += ["clamp"] if instruction.get("clmp") else []
    suffix = "_e64" if name in _short_names(target.name) or name.startswith("v_cmp") else ""
    return name + suffix, operands, modifiers


def _packed(instruction: Instruction, target: Target) -> Spelled:
    """VOP3P."""
    if instruction.name.startswith("v_accvgpr"):
        return _accumulator(instruction, target)
    mixed = "_mix" in instruction.name
    if mixed and (instruction.get("neg") or instruction.get("neg_hi")):
        raise NoText("signs of mixed operands")
    sources = used(instruction, "src0", "src1", "src2")
    operands = _operands(instruction, target, "vdst", *sources)
    high = instruction.get("opsel_hi") | instruction.get("opsel_hi2") << 2
    count = len(sources)
    modifiers = [
        *_bits("op_sel", instruction.get("opsel"), count, 0),
        *_bits("op_sel_hi", high, count, 0 if mixed else 1),
        *_bits("neg_lo", instruction.get("neg"), count, 0),
        *_bits("neg_hi", instruction.get("neg_hi"), count, 0),
        *(["clamp"] if instruction.get("clmp") else []),
    ]
    return instruction.name.replace("v_mad_mix", "v_fma_mix"), operands, modifiers


def _accumulator(instruction: Instruction, target: Target) -> Spelled:
    """A move between the two halves of the vector registers; the name alone says which operand is an AGPR."""
    written, read = instruction.operands["vdst"], instruction.operands["src0"]
    if "write" in instruction.name:
        operands = [registers("a", written.index, 1), text(read, target)]
    else:
        operands = [registers("v", written.index, 1), registers("a", read.index, 1)]
    return f"{instruction.name.removesuffix('_b32')}_b32", operands, []


def _bits(word: str, value: int, count: int, usual: int) -> Iterable[str]:
    bits = [value >> at & 1 for at in range(count)]
    return [] if all(bit == usual for bit in bits) else [f"{word}:[{','.join(map(str, bits))}]"]


def _matrix(instruction: Instruction, target: Target) -> Spelled:
    name = instruction.name
    if target.instructions == "gfx90a":  # before gfx940 without the underscore, and "1k" for what reads twice as much
        name = re.sub(r"(_\d+b)?_((?:bf|f|i)\d+)(_k2)?$", r"\2\3", name)
        name = name.removesuffix("_k2") if name.endswith("_k2") else f"{name}_1k" if name.endswith("bf16") else name
    sources = used(instruction, "src0", "src1", "src2")
    modifiers = [f"{key}:{instruction.get(key)}" for key in ("cbsz", "abid", "blgp") if instruction.get(key)]
    return name, _operands(instruction, target, "vdst", *sources), modifiers


def _half(part: Instruction, target: Target) -> str:
    """One half of a dual instruction."""
    operands = [text(part.operands[key], target) for key in ("vdst", "src0")]
    if part.name != "v_mov_b32":
        operands.append(text(part.operands["vsrc1"], target))
    literal: Operand | None = part.operands.get("literal")
    if literal is not None:
        operands.insert(3 if "fmaak" in part.name else 2, f"{literal.word():#x}")
    return f"{part.name.replace('v_', 'v_dual_', 1)} {', '.join(operands)}"


_SPELLED: Mapping[str, Callable[[Instruction, Target], Spelled]] = {
    "SOP1": _scalar("sdst", "ssrc0"),
    "SOP2": _scalar("sdst", "ssrc0", "ssrc1"),
    "SOPC": _scalar("ssrc0", "ssrc1"),
    "SOPK": _short_constant,
    "VOP1": _vector,
    "VOP1_SDST": _vector,
    "VOP2": _vector,
    "VOPC": _compare,
    "VOP3": _long,
    "VOP3SD": _long,
    "VOP3_SDST": _long,
    "VOP3P": _packed,
    "VOP3P_MFMA": _matrix,
}
