"""Resources of a compiled CPU kernel, read from the machine code in its object file."""

from __future__ import annotations

import io

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources.x86 import DecodeError, Instruction, decode

_SHF_EXECINSTR = 4

# Opcodes of multiply-adds by (map, prefix). Scalar ones, which loop tails use, have other opcodes.
_FUSED = frozenset(row + op for row in (0x90, 0xA0, 0xB0) for op in (6, 7, 8, 10, 12, 14))
_MULTIPLY_ADDS = {
    (2, 1): _FUSED | {0x04, 0x50, 0x51, 0x52, 0x53},  # vfmadd…ps and the like; vpmaddubsw, vpdpbusd, vpdpwssd
    (6, 1): _FUSED,  # vfmadd…ph
    (1, 1): frozenset([0xF5]),  # vpmaddwd
    (2, 2): frozenset([0x52, 0x50, 0x51, 0x5C]),  # vdpbf16ps, vpdpbsud, tdpbf16ps
    (2, 3): frozenset([0x50, 0x51, 0x5C, 0x5E]),  # vpdpbssd, tdpfp16ps, tdpbssd
}


class ReportError(ValueError):
    """An object file that is not a CPU kernel's."""


def read_report(data: bytes, expects: Expectation) -> dict[str, int]:
    """Return the resources of the kernel in the ELF object ``data``.

    ``matrix_instructions``: vector multiply-adds in the code (fma, dot products; each performs 4 to 64 of them);
    ``registers``: vector registers that they name; ``code_bytes`` of all functions; ``stack_bytes``: the largest frame
    that a function makes by moving the stack pointer, which holds its arrays and what did not stay in registers. Raises
    ReportError for anything but such an object.
    """
    matrix, size, frame = 0, 0, 0
    registers: set[int] = set()
    for code in _functions(data):
        size += len(code)
        try:
            instructions = list(decode(code))
        except DecodeError as error:
            raise ReportError(f"object with code that is not understood: {error}") from None
        products = [one for one in instructions if _multiplies(one)]
        frame = max(frame, *(_frame(code, one) for one in instructions), 0)
        matrix += len(products)
        registers.update(*(one.registers for one in products))
    if expects.matrix_instructions and matrix == 0:
        raise ReportError("no vector multiply-add in the code: the object is none of a kernel")
    return {"registers": len(registers), "matrix_instructions": matrix, "code_bytes": size, "stack_bytes": frame}


def _multiplies(one: Instruction) -> bool:
    return one.encoding != "legacy" and one.opcode in _MULTIPLY_ADDS.get((one.map, one.pp), ())


def _frame(code: bytes, one: Instruction) -> int:
    """The bytes by which ``sub rsp, n`` (48 81 EC, 48 83 EC) or ``add rsp, -n`` (48 81 C4, 48 83 C4) lower it."""
    if one.encoding != "legacy" or one.map or one.opcode not in (0x81, 0x83):
        return 0
    operation, value = code[one.offset : one.offset + 3], code[one.offset + 3 : one.offset + one.length]
    if operation in (b"\x48\x81\xec", b"\x48\x83\xec"):
        return int.from_bytes(value, "little", signed=True)
    return -int.from_bytes(value, "little", signed=True) if operation in (b"\x48\x81\xc4", b"\x48\x83\xc4") else 0


def _functions(data: bytes) -> list[bytes]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        sections = [one for one in ELFFile(io.BytesIO(data)).iter_sections() if one["sh_flags"] & _SHF_EXECINSTR]
        return [bytes(one.data()) for one in sections]
    except (ELFError, ValueError, TypeError, KeyError) as error:
        raise ReportError(f"not an ELF object: {error or type(error).__name__}") from None
