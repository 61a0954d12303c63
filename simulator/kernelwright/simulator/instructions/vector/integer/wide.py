"""Integer arithmetic on 64 bits, and sums with carry: carries and borrows are lane masks.

Inactive lanes' bits of a carry mask become 0 (CDNA3 ISA guide, "VOP3B: the carry-out of inactive lanes").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import Op, lanewise, vector
from kernelwright.simulator.instructions.vector.masks import lane_mask, mask_destination, mask_source
from kernelwright.simulator.instructions.vector.operands import sources
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine.registers import to_bits
from kernelwright.simulator.machine.wave import Wave

lanewise(
    {
        "v_lshlrev_b64": Op(np.left_shift, "u64", ("u6", "u64"), reverse=True),
        "v_lshrrev_b64": Op(np.right_shift, "u64", ("u6", "u64"), reverse=True),
        "v_ashrrev_i64": Op(lambda b, a: b >> a.view(np.int64), "i64", ("u6", "i64"), reverse=True),
        "v_lshl_add_u64": Op(np.left_shift, "u64", ("u64", "u3", "u64"), np.add),
    }
)

# name → (is it a difference, are its sources reversed, does it take a carry)
_CARRIES: dict[str, tuple[bool, bool, bool]] = {
    "v_add_co_u32": (False, False, False),
    "v_sub_co_u32": (True, False, False),
    "v_subrev_co_u32": (True, True, False),
    "v_addc_co_u32": (False, False, True),
    "v_subb_co_u32": (True, False, True),
    "v_subbrev_co_u32": (True, True, True),
    "v_add_co_ci_u32": (False, False, True),
    "v_sub_co_ci_u32": (True, False, True),
    "v_subrev_co_ci_u32": (True, True, True),
}


@vector(*_CARRIES)
def build_carry(instruction: Instruction, target: Target) -> Step:
    """Sums and differences that produce a carry or borrow, and may take one (from ``src2``, or from VCC)."""
    subtracts, reverse, takes = _CARRIES[instruction.name]
    if instruction.get("clmp"):
        raise Unmodelled(f"{instruction.name}: clamp")
    first, second = sources(instruction, target, ("u32", "u32"))
    if reverse:
        first, second = second, first
    carry_in = mask_source(instruction.operands.get("src2"), target) if takes else None
    write, write_carry = destination(instruction, target, "u32"), mask_destination(instruction)
    combine: Callable[[Any, Any, Any], tuple[Any, Any]] = _difference if subtracts else _sum

    def step(wave: Wave) -> None:
        carry = None if carry_in is None else lane_mask(carry_in(wave), wave.lanes)
        total, out = combine(first(wave), second(wave), carry)
        write(wave, total)
        write_carry(wave, to_bits(out) & wave.exec)

    return step


def _sum(a: Any, b: Any, carry: Any) -> tuple[Any, Any]:
    total = a + b
    out = total < a
    if carry is None:
        return total, out
    more = total + carry
    return more, out | (more < total)


def _difference(a: Any, b: Any, borrow: Any) -> tuple[Any, Any]:
    total, out = a - b, a < b
    if borrow is None:
        return total, out
    return total - borrow, out | (total < borrow)


@vector("v_mad_u64_u32", "v_mad_co_u64_u32", "v_mad_i64_i32", "v_mad_co_i64_i32")
def build_mad(instruction: Instruction, target: Target) -> Step:
    """32-bit factors, 64-bit sum; the carry mask tells where the sum exceeds 64 bits."""
    if instruction.get("clmp"):
        raise Unmodelled(f"{instruction.name}: clamp")
    signed = "i64" in instruction.name
    kinds = ("i32", "i32", "i64") if signed else ("u32", "u32", "u64")
    wide: Any = np.int64 if signed else np.uint64
    first, second, third = sources(instruction, target, kinds)
    write, write_carry = destination(instruction, target, kinds[2]), mask_destination(instruction)
    carry: Callable[[Any, Any, Any], Any] = _sign_beyond if signed else _carry_beyond

    def step(wave: Wave) -> None:
        product, addend = first(wave).astype(wide) * second(wave).astype(wide), third(wave)
        total = product + addend
        out = carry(product, addend, total)
        write(wave, total)
        write_carry(wave, to_bits(out) & wave.exec if np.count_nonzero(out) else 0)

    return step


def _carry_beyond(product: Any, addend: Any, total: Any) -> Any:
    return total < addend


def _sign_beyond(product: Any, addend: Any, total: Any) -> Any:
    """Bit 64 of the exact sum, its sign; it differs from that of the 64-bit sum on overflow."""
    overflowed = ((product ^ total) & (addend ^ total)) < 0
    return (total < 0) ^ overflowed
