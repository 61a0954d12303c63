"""Lane-wise logic on bits and bytes: Boolean functions, bit fields, bit counts, moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import Op, bind, lanewise, vector
from kernelwright.simulator.instructions.vector.operands import operand_at, plain
from kernelwright.simulator.instructions.vector.results import destination

_ONE = np.uint32(1)
_NONE = np.uint32(0xFFFFFFFF)


def _same(a: Any) -> Any:
    return a


def _xnor(a: Any, b: Any) -> Any:
    return ~(a ^ b)


def _insert(mask: Any, a: Any, b: Any) -> Any:
    """Bits of a where the mask is set, else of b."""
    return b ^ (mask & (a ^ b))


def _field_mask(width: Any) -> Any:
    return (_ONE << width) - _ONE


def _extract(a: Any, offset: Any, width: Any) -> Any:
    return a >> offset & _field_mask(width)


def _extract_signed(a: Any, offset: Any, width: Any) -> Any:
    """A field whose highest bit is its sign; a width of 0 gives 0."""
    field = a.view(np.int32) >> offset.view(np.int32)
    up = np.uint32(32) - np.maximum(width, _ONE)
    signed = field << up.view(np.int32) >> up.view(np.int32)
    return np.where(width == 0, np.int32(0), signed)


def reverse_bits(a: Any) -> Any:
    """Reverse the bits of each word."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        s, m = np.uint32(shift), np.uint32(mask)
        a = (a >> s & m) | (a & m) << s
    return np.asarray(a).byteswap()


def leading_zeros(a: Any) -> Any:
    """Zeros above the highest set bit; all ones for 0."""
    exponent = np.frexp(a.astype(np.float64))[1].astype(np.uint32)
    return np.where(a == 0, _NONE, np.uint32(32) - exponent)


def trailing_zeros(a: Any) -> Any:
    """Zeros below the lowest set bit; all ones for 0."""
    lowest = a & (np.uint32(0) - a)
    exponent = np.frexp(lowest.astype(np.float64))[1].astype(np.uint32)
    return np.where(a == 0, _NONE, exponent - _ONE)


def sign_bits(a: Any) -> Any:
    """Bits from the top that equal the sign; all ones if all 32 do."""
    return leading_zeros(np.where(a.view(np.int32) < 0, ~a, a))


def _align(a: Any, b: Any, shift: Any) -> Any:
    """Low word of (a:b) >> shift, for shifts below 32."""
    wide = a.astype(np.uint64) << np.uint64(32) | b
    return (wide >> shift.astype(np.uint64)).astype(np.uint32)


_W1, _W2, _W3 = ("u32",), ("u32",) * 2, ("u32",) * 3
_H1, _H2 = ("u16",), ("u16",) * 2

BOOLEAN = {
    "v_and_b32": Op(np.bitwise_and, "u32", _W2),
    "v_or_b32": Op(np.bitwise_or, "u32", _W2),
    "v_xor_b32": Op(np.bitwise_xor, "u32", _W2),
    "v_xnor_b32": Op(_xnor, "u32", _W2),
    "v_not_b32": Op(np.invert, "u32", _W1),
    "v_and_b16": Op(np.bitwise_and, "u16", _H2),
    "v_or_b16": Op(np.bitwise_or, "u16", _H2),
    "v_xor_b16": Op(np.bitwise_xor, "u16", _H2),
    "v_not_b16": Op(np.invert, "u16", _H1),
    "v_or3_b32": Op(np.bitwise_or, "u32", _W3, np.bitwise_or),
    "v_xor3_b32": Op(np.bitwise_xor, "u32", _W3, np.bitwise_xor),
    "v_and_or_b32": Op(np.bitwise_and, "u32", _W3, np.bitwise_or),
    "v_lshl_or_b32": Op(np.left_shift, "u32", ("u32", "u5", "u32"), np.bitwise_or),
}

FIELDS = {
    "v_bfi_b32": Op(_insert, "u32", _W3),
    "v_bfe_u32": Op(_extract, "u32", ("u32", "u5", "u5")),
    "v_bfe_i32": Op(_extract_signed, "i32", ("u32", "u5", "u5")),
    "v_bfm_b32": Op(lambda width, offset: _field_mask(width) << offset, "u32", ("u5", "u5")),
    "v_bfrev_b32": Op(reverse_bits, "u32", _W1),
    "v_alignbit_b32": Op(_align, "u32", ("u32", "u32", "u5")),
    "v_alignbyte_b32": Op(lambda a, b, c: _align(a, b, (c & np.uint32(3)) << np.uint32(3)), "u32", _W3),
}

COUNTS = {
    "v_bcnt_u32_b32": Op(lambda a, b: np.bitwise_count(a) + b, "u32", _W2),
    "v_ffbh_u32": Op(leading_zeros, "u32", _W1),
    "v_clz_i32_u32": Op(leading_zeros, "u32", _W1),
    "v_ffbl_b32": Op(trailing_zeros, "u32", _W1),
    "v_ctz_i32_b32": Op(trailing_zeros, "u32", _W1),
    "v_ffbh_i32": Op(sign_bits, "u32", _W1),
    "v_cls_i32": Op(sign_bits, "u32", _W1),
}


def _next_random(a: Any) -> Any:
    """The next word of a linear-feedback shift register (CDNA4 ISA guide, "V_PRNG_B32")."""
    return a << _ONE ^ (a >> np.uint32(31)) * np.uint32(197)


MOVES = {
    "v_prng_b32": Op(_next_random, "u32", _W1),
    "v_mov_b16": Op(_same, "u16", _H1),
    "v_mov_b32": Op(_same, "u32", _W1),
    "v_mov_b64": Op(_same, "u64", ("u64",)),
}

for _table in (BOOLEAN, FIELDS, COUNTS, MOVES):
    lanewise(_table)


def truth_function(table: int) -> Callable[[Any, Any, Any], Any]:
    """The Boolean function of three operands: bit 4a + 2b + c of the table is its value."""

    def apply(a: Any, b: Any, c: Any) -> Any:
        picked = [_row(a, b, c, index) for index in range(8) if table >> index & 1]
        return np.bitwise_or.reduce(picked) if picked else np.zeros_like(a)

    return apply


def _row(a: Any, b: Any, c: Any, index: int) -> Any:
    x, y, z = (value if index & bit else ~value for value, bit in ((a, 4), (b, 2), (c, 1)))
    return x & y & z


@vector("v_bitop3_b32", "v_bitop3_b16")
def build_bitop3(instruction: Instruction, target: Target) -> Step:
    """Boolean function with its truth table in the bits that other instructions use for modifiers."""
    table = instruction.get("omod") << 6 | instruction.get("abs") << 3 | instruction.get("neg")
    kind = "u32" if instruction.name.endswith("32") else "u16"
    inputs = [plain(operand_at(instruction, position), target, kind) for position in range(3)]
    if instruction.get("clmp"):
        raise Unmodelled(f"{instruction.name}: clamp")
    bare = _without_modifiers(instruction)
    return bind(_KNOWN.get(table) or truth_function(table), inputs, destination(bare, target, kind))


def _without_modifiers(instruction: Instruction) -> Instruction:
    fields = {key: value for key, value in instruction.fields.items() if key not in ("omod", "abs", "neg")}
    return Instruction(
        instruction.pc, instruction.size, instruction.encoding, instruction.name, instruction.operands, fields
    )


# Truth tables that LLVM generates for pairs of ordinary operations, in few NumPy calls.
_KNOWN: dict[int, Callable[[Any, Any, Any], Any]] = {
    0xEA: lambda a, b, c: a & b | c,
    0xF8: lambda a, b, c: a | b & c,
    0xEC: lambda a, b, c: a & c | b,
    0xFE: lambda a, b, c: a | b | c,
    0x80: lambda a, b, c: a & b & c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0x6C: lambda a, b, c: a & c ^ b,
    0x78: lambda a, b, c: a ^ b & c,
    0x6A: lambda a, b, c: a & b ^ c,
    0x36: lambda a, b, c: (a | c) ^ b,
    0x1E: lambda a, b, c: a ^ (b | c),
    0x56: lambda a, b, c: (a | b) ^ c,
    0xC8: lambda a, b, c: (a | c) & b,
    0xE0: lambda a, b, c: a & (b | c),
    0xA8: lambda a, b, c: (a | b) & c,
    0x48: lambda a, b, c: (a ^ c) & b,
    0x60: lambda a, b, c: a & (b ^ c),
    0x28: lambda a, b, c: (a ^ b) & c,
    0xBE: lambda a, b, c: (a ^ b) | c,
    0xF6: lambda a, b, c: a | (b ^ c),
}
