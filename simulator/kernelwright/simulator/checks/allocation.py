"""Find the registers of one static instruction that its kernel's descriptor does not allocate; always checked.

The check costs nothing per step: it runs once per static instruction, when the program binds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelwright.simulator.checks.effects import effects
from kernelwright.simulator.checks.state import vector_name
from kernelwright.simulator.code.descriptor import CDNA_SGPRS, Allocation
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.machine.registers import VGPRS


def beyond_allocation(instruction: Instruction, target: Target, allocated: Allocation) -> str | None:
    """Why the instruction cannot run with these registers, or None if it names only allocated ones."""
    usage = effects(instruction, target)
    outside = [vector_name(row) for row in _vectors(usage.vector_reads + usage.vector_writes, allocated)]
    if target.cdna:
        scalars = sorted(set(usage.scalar_reads + usage.scalar_writes))
        outside += [f"s{number}" for number in scalars if allocated.sgprs <= number < CDNA_SGPRS]
    if not outside:
        return None
    more = f" and {len(outside) - 1} more registers" if len(outside) > 1 else ""
    return f"uses {outside[0]}{more} beyond the kernel descriptor's allocation: {allocated}"


def _vectors(rows: Iterable[int], allocated: Allocation) -> Iterator[int]:
    for row in sorted(set(rows)):
        limit = allocated.vgprs if row < VGPRS else VGPRS + allocated.agprs
        if row >= limit:
            yield row
