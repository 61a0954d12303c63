"""Vector instructions that only gfx90a has, under opcodes that mean something else, or nothing, on later chips.

The instruction tables are those of later chips, so the machine code gets an opcode of the same form that they contain,
and the instruction its correct name. Source: LLVM, VOP2Instructions.td and VOP3Instructions.td (HasMadMacF32Insts).
"""

from __future__ import annotations

_VOP3_PREFIX = 0x34  # bits 31:26
# opcode → (opcode of the same form in the tables, name)
_VOP3 = {0x1C1: (0x1CB, "v_mad_f32"), 0x1C0: (0x1CB, "v_mad_legacy_f32"), 0x116: (0x13B, "v_mac_f32")}
_VOP2 = {0x16: (0x3B, "v_mac_f32"), 0x17: (0x17, "v_madmk_f32"), 0x18: (0x18, "v_madak_f32")}


def translated(data: bytes) -> tuple[bytes, str | None]:
    """The machine code as the tables expect it, and the name of the instruction if it differs from theirs."""
    word = int.from_bytes(data[:4], "little")
    if word >> 26 == _VOP3_PREFIX:
        low, mask, own = 16, 0x3FF, _VOP3
    elif not word >> 31:
        low, mask, own = 25, 0x3F, _VOP2
    else:
        return data, None
    opcode, name = own.get(word >> low & mask, (0, None))
    if name is None:
        return data, None
    word = word & ~(mask << low) | opcode << low
    return word.to_bytes(4, "little") + data[4:], name
