"""Puts the checks on request around every step: registers that hold nothing yet, or whose load is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.checks.counters import Access, Traffic, counters_of, flat_counters, waits_of
from kernelwright.simulator.checks.effects import Effects, effects
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.checks.scratch import CheckedScratch
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.instructions.semantics import Step, find
from kernelwright.simulator.machine.registers import VGPRS
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import POISON

_MOVES = ("v_mov_b", "v_accvgpr", "v_writelane")
_LOW_FROM_LOW = ("v_mad_u64_u32", "v_mad_i64_i32", "v_mad_co_", "v_lshl_add_u64", "v_lshlrev_b64", "v_add_nc_u64")

Before = Callable[[Wave], None]


class WaveChecks:
    """What the checks know about one wave: a Wave's ``checks``.

    ``known`` says per row and lane, ``scalars`` per number whether a register holds something. ``access`` is the memory
    instruction that runs; ``stored`` and ``loaded`` are (dwords, lanes) of scratch accesses, see
    :class:`~kernelwright.simulator.checks.scratch.CheckedScratch`.
    """

    def __init__(self, wave: Wave) -> None:
        self.known: NDArray[np.bool_] = wave.v != POISON
        self.scalars = [word != POISON for word in wave.s]
        self.traffic = Traffic()
        self.access: Access | None = None
        self.stored: NDArray[np.bool_] | None = None
        self.loaded: NDArray[np.bool_] | None = None


def prepare(waves: Sequence[Wave], checks: Checks) -> None:
    """Before the waves of a workgroup start."""
    for wave in waves:
        wave.checks = WaveChecks(wave)
        if checks.uninitialised and wave.scratch is not None:
            wave.scratch = CheckedScratch(wave.scratch.nbytes, wave.lanes)


def check(instruction: Instruction, step: Step, target: Target, checks: Checks) -> Step:
    """The step with the checks around it; Trap for what they find."""
    found = effects(instruction, target)
    around: list[tuple[Before | None, Before | None]] = [_access(instruction, target, found, checks)]
    if checks.waits:
        around.append((_arrived(found, instruction, target), None))
    if checks.uninitialised:
        around.append(_defined(instruction, found))
    before = [first for first, _ in reversed(around) if first is not None]
    after = [last for _, last in around if last is not None]
    if not before and not after:
        return step

    def checked(wave: Wave) -> None:
        for check in before:
            check(wave)
        step(wave)
        for check in after:
            check(wave)

    return checked


def _access(
    instruction: Instruction, target: Target, found: Effects, checks: Checks
) -> tuple[Before | None, Before | None]:
    """Memory instructions start to be under way; waits end that."""
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
                if found.loads:
                    traffic.vectors.update(dict.fromkeys(found.vector_writes, access))
                    traffic.scalars.update(dict.fromkeys(found.scalar_writes, access))

        return start, None
    waits = waits_of(instruction, target) if instruction.name.startswith("s_wait") else {}
    if not waits or not checks.waits:
        return None, None

    def wait(wave: Wave) -> None:
        for counter, count in waits.items():
            wave.checks.traffic.wait(counter, count)

    return wait, None


def _arrived(found: Effects, instruction: Instruction, target: Target) -> Before | None:
    """No register may be used whose load is under way; loads that arrive in order may overwrite one another's."""
    counters, ordered = counters_of(instruction, target)
    reads, writes = frozenset(found.vector_reads), frozenset(found.vector_writes)
    scalars, results = frozenset(found.scalar_reads), frozenset(found.scalar_writes)
    vectors, all_scalars = reads | writes, scalars | results

    def step(wave: Wave) -> None:
        traffic = wave.checks.traffic
        if traffic.vectors and not vectors.isdisjoint(traffic.vectors):
            for row in vectors & traffic.vectors.keys():
                access = traffic.vectors[row]
                if row in reads or not (ordered and access.ordered and access.due == set(counters)):
                    does = "reads" if row in reads else "overwrites"
                    raise Trap(f"{does} {_vector(row)} before a wait for {access}")
        if traffic.scalars and not all_scalars.isdisjoint(traffic.scalars):
            number = min(all_scalars & traffic.scalars.keys())
            does = "reads" if number in scalars else "overwrites"
            raise Trap(f"{does} s{number} before a wait for {traffic.scalars[number]}")

    return step if vectors or all_scalars else None


def _strict(instruction: Instruction, found: Effects) -> tuple[Before | None, Before | None]:
    """Every register that is read must hold something; results do then. Scratch may take and give back unknowns."""
    scratch = "SCRATCH" in instruction.encoding
    rows = [row for row in found.vector_reads if not (scratch and row in found.data)]
    scalars, results, data = found.scalar_reads, found.scalar_writes, list(found.data)
    writes = list(found.vector_writes)

    def before(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        if rows:
            known = state.known[rows]
            if not known.all() and not known[:, wave.mask].all():
                lacking = ~known & wave.mask
                row = int(lacking.any(axis=1).argmax())
                lane = int(lacking[row].argmax())
                raise Trap(f"uses {_vector(rows[row])}, which depends on nothing that was ever set, in lane {lane}")
        _need_scalars(state, scalars)
        if scratch and data:
            state.stored = state.known[data]

    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        if scratch and state.loaded is not None and writes:
            np.copyto(state.known[writes[0] : writes[-1] + 1], state.loaded, where=wave.mask)
            state.loaded = None
        elif writes:
            state.known[writes] |= wave.mask
        for number in results:
            state.scalars[number] = True

    return before, after


def _need_scalars(state: WaveChecks, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        if not state.scalars[number]:
            raise Trap(f"uses s{number}, which depends on nothing that was ever set")


def _passing_on(instruction: Instruction, found: Effects) -> tuple[Before | None, Before | None]:
    """Results of vector arithmetic are as unknown as their sources, lane by lane; those in scalar registers as a whole.

    The low half of a 64-bit sum, product or shift to the left does not depend on high halves, and compilers leave
    those unset.
    """
    rows, scalars = list(found.vector_reads), found.scalar_reads
    move = instruction.name.startswith(_MOVES)
    high = {operand.index + 1 for operand in instruction.operands.values() if operand.count == 2}
    low = [row for row in rows if row not in high] if instruction.name.startswith(_LOW_FROM_LOW) else rows
    first_lane, any_lane = (instruction.name.startswith(name) for name in ("v_readfirstlane", "v_readlane"))
    writes, results = found.vector_writes, found.scalar_writes

    def before(wave: Wave) -> None:
        if not move:
            _need_scalars(wave.checks, scalars)

    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        known: NDArray[np.bool_] = np.all(state.known[rows], axis=0)
        if move and not all(state.scalars[number] for number in scalars):
            known = ~wave.mask
        for number in results:
            lanes = known[wave.mask] if wave.exec else known
            state.scalars[number] = bool(known.any() if any_lane else lanes[0] if first_lane else lanes.all())
        for position, row in enumerate(writes):
            chosen = known if position or low is rows else np.all(state.known[low], axis=0)
            np.copyto(state.known[row], chosen, where=wave.mask)

    return before, after


def _scalar_move(found: Effects) -> tuple[Before | None, Before | None]:
    def after(wave: Wave) -> None:
        state: WaveChecks = wave.checks
        known = all(state.scalars[number] for number in found.scalar_reads)
        for number in found.scalar_writes:
            state.scalars[number] = known

    return None, after


def _defined(instruction: Instruction, found: Effects) -> tuple[Before | None, Before | None]:
    entry = find(instruction.parts[0].name if instruction.parts else instruction.name)
    if entry is not None and entry.kind == "vector":
        return _passing_on(instruction, found)
    if instruction.name.startswith("s_mov_b"):
        return _scalar_move(found)
    return _strict(instruction, found)


def _vector(row: int) -> str:
    return f"v{row}" if row < VGPRS else f"a{row - VGPRS}"
