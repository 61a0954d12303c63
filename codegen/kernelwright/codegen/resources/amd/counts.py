"""Counts of one AMD kernel from the compiler's assembly, as its library's manifest states them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kernelwright.codegen.resources.amd.addresses import address_register, lds_bases
from kernelwright.codegen.resources.amd.arithmetic import Words
from kernelwright.codegen.resources.amd.assembly import Statement, function, lines
from kernelwright.files.counts.conflicts import conflicts
from kernelwright.files.counts.instruction_set import InstructionSet
from kernelwright.files.counts.line import access_of
from kernelwright.files.counts.loops import main_loop
from kernelwright.files.counts.mix import lds_access, mix_of
from kernelwright.files.counts.turn import bound, clocks

_STRIDED = 64  # stride of ds_read2st64 and ds_load_2addr_stride64


def read_counts(
    text: str, symbols: Sequence[str], known: InstructionSet, block_size: int, simds: int
) -> dict[str, Any]:
    """Return the counts of the function that multiplies, among the device functions ``symbols`` of an assembly.

    Workgroups have ``block_size`` lanes, compute units ``simds`` SIMDs.

    ``function`` is its symbol. ``loop``: one iteration of its main loop for one wave (fields of
    ``kernelwright.files.counts.mix.Mix``), None without one; with ``conflict_cycles``, the LDS clocks that bank
    conflicts add to an iteration, averaged over the waves of a workgroup, None if an address is not known before a
    launch; ``conflicts_assumed``, whether no source states the phases of one of its accesses. ``outside``: all other
    instructions, each once. ``clocks`` and ``bound``: see ``kernelwright.files.counts.turn``. ``valu_per_matrix_cycle``
    and ``lds_per_matrix_cycle``: clocks of these units over those of the matrix core; None without a loop, or if a
    number is unknown.
    """
    bodies = [function(text, symbol) for symbol in symbols]
    loops = [main_loop(lines(body)) for body in bodies]
    sizes = [(loop is not None, len(loop or ()), len(body)) for body, loop in zip(bodies, loops, strict=True)]
    at = max(range(len(bodies)), key=lambda number: sizes[number])
    body, loop = bodies[at], loops[at]
    own = lines(body)
    outside = mix_of(((line, 1) for number, line in enumerate(own) if not loop or number not in loop), known)
    if loop is None:
        nothing = dict.fromkeys(("loop", "clocks", "bound", "valu_per_matrix_cycle", "lds_per_matrix_cycle"))
        return {"function": symbols[at], **nothing, "outside": asdict(outside)}
    turn = mix_of(((own[number], 1) for number in sorted(loop)), known)
    waves = -(-block_size // known.lanes)
    added, assumed = _conflicts(body, sorted(loop), known, waves)
    taken = clocks(turn, known, simds, added or 0)
    matrix = taken["matrix"] if taken else 0
    return {
        "function": symbols[at],
        "loop": {**asdict(turn), "conflict_cycles": added, "conflicts_assumed": assumed},
        "outside": asdict(outside),
        "clocks": taken,
        "bound": bound(taken),
        "valu_per_matrix_cycle": round(turn.vector_cycles / matrix, 3) if taken and matrix else None,
        "lds_per_matrix_cycle": round(taken["lds"] / matrix, 3) if taken and matrix and added is not None else None,
    }


def _conflicts(
    body: Sequence[Statement], loop: Sequence[int], known: InstructionSet, waves: int
) -> tuple[float | None, bool]:
    """Return the clocks that conflicts add to an iteration of a wave, and whether some of the phases are assumed."""
    bases = lds_bases(body, waves, known.lanes)
    added, assumed, unknown = 0, False, False
    for at in loop:
        access, _ = access_of(body[at].line)
        served = lds_access(access)
        if served is None or address_register(body[at]) is None:
            continue  # atomics, lane exchanges; loads that bypass registers write contiguously
        phases = known.phases(*served)
        assumed = assumed or phases.assumed or "transposed" in access
        if at not in bases:
            unknown = True
            continue
        for offset in _offsets(body[at], served[1]):
            added += sum(conflicts(row, range(known.lanes), served[1], phases)[1] for row in _rows(bases[at], offset))
    if unknown:
        return None, assumed
    average = added / waves
    return (int(average) if average.is_integer() else round(average, 2)), assumed


def _rows(bases: Words, offset: int) -> list[list[int]]:
    return [[int(value) + offset & 0xFFFFFFFF for value in row] for row in bases]


def _offsets(one: Statement, nbytes: int) -> list[int]:
    """Return the bytes added to the address register: one number, or two for a pair."""
    if re.match(r"ds_(read2|write2|load_2addr|store_2addr)", one.line.name):
        unit = nbytes * (_STRIDED if "st64" in one.line.name or "stride64" in one.line.name else 1)
        return [int(one.modifiers.get(key, "0")) * unit for key in ("offset0", "offset1")]
    return [int(one.modifiers.get("offset", "0"))]
