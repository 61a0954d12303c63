"""The check ``waits``: no register may be used while a load into it is outstanding."""

from __future__ import annotations

from kernelwright.simulator.checks.counters import Access, counters_of, flat_counters, waits_of
from kernelwright.simulator.checks.effects import Effects
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.checks.state import Around, Check, vector_name
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.wave import Wave


def track_accesses(instruction: Instruction, target: Target, usage: Effects, checks: Checks) -> Around:
    """Before one step: a memory instruction becomes outstanding, a wait instruction retires older ones.

    The current access is recorded for CheckedLds even if ``checks.waits`` is off.
    """
    counters, ordered = counters_of(instruction, target)
    if counters:
        operands, flat = instruction.operands, instruction.encoding.endswith("FLAT")
        address = operands["vaddr" if "vaddr" in operands else "addr"].index if flat else None

        def start(wave: Wave) -> None:
            due, in_order = counters, ordered
            if address is not None:
                due, in_order = flat_counters(counters, wave.u[address + 1][wave.mask])
            access = Access(instruction, wave.index, wave.signals, due, in_order)
            wave.checks.access = access
            if checks.waits:
                traffic = wave.checks.traffic
                traffic.issue(access)
                if usage.loads:
                    traffic.vectors.update(dict.fromkeys(usage.vector_writes, access))
                    traffic.scalars.update(dict.fromkeys(usage.scalar_writes, access))

        return start, None
    waits = waits_of(instruction, target) if instruction.name.startswith("s_wait") else {}
    if not waits or not checks.waits:
        return None, None

    def wait(wave: Wave) -> None:
        for counter, count in waits.items():
            wave.checks.traffic.wait(counter, count)

    return wait, None


def require_arrived(usage: Effects, instruction: Instruction, target: Target) -> Check | None:
    """Before one step: Trap if it uses a register with an outstanding load.

    Loads that return in order may overwrite one another's registers. None for a step that uses no registers.
    """
    counters, ordered = counters_of(instruction, target)
    reads, writes = frozenset(usage.vector_reads), frozenset(usage.vector_writes)
    scalars, results = frozenset(usage.scalar_reads), frozenset(usage.scalar_writes)
    vectors, all_scalars = reads | writes, scalars | results

    def step(wave: Wave) -> None:
        traffic = wave.checks.traffic
        if traffic.vectors and not vectors.isdisjoint(traffic.vectors):
            for row in vectors & traffic.vectors.keys():
                access = traffic.vectors[row]
                if row in reads or not (ordered and access.ordered and access.due == set(counters)):
                    does = "reads" if row in reads else "overwrites"
                    raise Trap(f"{does} {vector_name(row)} before a wait for {access}")
        if traffic.scalars and not all_scalars.isdisjoint(traffic.scalars):
            number = min(all_scalars & traffic.scalars.keys())
            does = "reads" if number in scalars else "overwrites"
            raise Trap(f"{does} s{number} before a wait for {traffic.scalars[number]}")

    return step if vectors or all_scalars else None
