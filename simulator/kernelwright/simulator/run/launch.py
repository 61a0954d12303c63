"""Run one kernel launch, from a code object and host memory to a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product

import numpy as np

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.simulator.checks.checking import check
from kernelwright.simulator.checks.debugging import Debug, watch
from kernelwright.simulator.checks.lds import CheckedLds
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.checks.state import prepare
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.object_file import CodeObject, read_code_object
from kernelwright.simulator.counting.observer import Counts
from kernelwright.simulator.errors import ObjectError, SimulatorError
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory, Region
from kernelwright.simulator.machine.regions import Buffer, constant, contents, direct, restore, shared
from kernelwright.simulator.run.processes import run_forked
from kernelwright.simulator.run.program import Program
from kernelwright.simulator.run.report import LaunchReport, Ran, counts_of
from kernelwright.simulator.run.schedule import Schedule
from kernelwright.simulator.run.start import ARGUMENT_ADDRESS, CODE_ADDRESS, Index, Start, kernel_arguments

STEPS = 200_000_000  # instructions of one workgroup; they take about twenty minutes

__all__ = ["Buffer", "Simulator"]


class Simulator:
    """Executes kernels of any simulated architecture.

    ``processes`` is the number of forked processes that share the workgroups of a launch; kernels with global atomics
    always run in one process, so that their results are reproducible. With a ``seed``, waves take turns in slices of
    random length; with None, each runs to its next barrier, in order. ``steps`` is the maximum number of instructions
    of one workgroup, by default 200 million; ``instruction_limit`` is the maximum over all workgroups of a launch, by
    default unlimited. The fault at a limit reports how many ran and the position of each wave. Each of several
    processes may execute as many as the limit before their sum is compared with it. ``debug`` sets traces and
    breakpoints, ``counts`` counts instructions and memory accesses; each implies one process. Raises SimulatorError for
    ``processes``, ``steps`` or ``instruction_limit`` below 1.
    """

    def __init__(
        self,
        *,
        checks: Checks = Checks(),  # noqa: B008  (frozen)
        processes: int = 1,
        seed: int | None = None,
        steps: int = STEPS,
        instruction_limit: int | None = None,
        debug: Debug | None = None,
        counts: Counts | None = None,
    ) -> None:
        if processes < 1 or steps < 1:
            raise SimulatorError(f"processes ({processes}) and steps ({steps}) must be at least 1")
        if instruction_limit is not None and instruction_limit < 1:
            raise SimulatorError(f"instruction_limit is {instruction_limit}; allowed: None, or an integer from 1 on")
        self._checks, self._processes, self._seed, self._steps = checks, processes, seed, steps
        self._limit, self._debug, self._counts = instruction_limit, debug, counts

    def launch(
        self,
        image: bytes,
        kernel: str,
        *,
        grid: Index,
        block: Index,
        arguments: bytes,
        buffers: Sequence[Buffer],
        dynamic_lds: int = 0,
        arch: str | None = None,
    ) -> LaunchReport:
        """Run ``kernel`` of the code object ``image`` to completion.

        ``grid`` is in workgroups, ``block`` in work-items, ``dynamic_lds`` in bytes. ``arguments`` holds all explicit
        arguments of the kernel, laid out as in its argument segment, and no hidden ones. ``arch`` selects the
        architecture if several have the machine of the image. The kernel may access only ``buffers``, which change in
        place; their contents are undefined after a Fault. Raises ObjectError for an image or kernel that cannot be run,
        SimulatorError for illegal sizes and missing arguments, Fault for an illegal action of the kernel.
        """
        program = _program(image, kernel, replace(self._checks, seeds=()), arch)
        if self._debug is not None or self._counts is not None:
            program = _watched(program, self._checks, self._debug, self._counts)
        start = _start(program, grid, block, arguments, dynamic_lds)
        workgroups = [(x, y, z) for z, y, x in product(*(range(extent) for extent in reversed(grid)))]
        before = contents(buffers) if self._checks.seeds else []
        counts = self._run(program, start, workgroups, buffers, self._seed)
        if self._checks.seeds:
            after = contents(buffers)
            for seed in self._checks.seeds:
                restore(buffers, before)
                self._run(program, start, workgroups, buffers, seed)
            restore(buffers, after)
        waves = start.waves * len(workgroups)
        return LaunchReport(kernel, program.code.target.name, len(workgroups), waves, sum(counts.values()), counts)

    def _run(
        self, program: Program, start: Start, workgroups: list[Index], buffers: Sequence[Buffer], seed: int | None
    ) -> dict[str, int]:
        """Run all workgroups once; returns the counts of instructions by class."""
        run = _Launch(program, start, self._steps, self._limit, seed, self._checks)
        fixed = [
            constant(ARGUMENT_ADDRESS, start.arguments, "the kernel's arguments"),
            constant(CODE_ADDRESS, program.code.memory, "the code object"),
        ]
        alone = self._debug is not None or self._counts is not None or _has_global_atomics(program)
        count = 1 if alone else min(self._processes, len(workgroups))
        ran: list[Ran]
        if self._counts is not None:
            self._counts.begin(program.kernel.name)
        if count == 1:
            ran = [run.workgroups(workgroups, fixed + direct(buffers))]
        else:
            with shared(buffers) as regions:
                memory = fixed + regions
                ran = run_forked([partial(run.workgroups, workgroups[n::count], memory) for n in range(count)])
        if self._counts is not None:
            self._counts.end(program.instructions, ran, program.code.target)
        counts = counts_of(program, ran)
        total = sum(counts.values())
        if self._limit is not None and total > self._limit:
            raise SimulatorError(
                f"kernel {program.kernel.name} executed {total} instructions in {count} processes, and all waves "
                f"ended; the instruction limit of the launch is {self._limit}. One process says where it is reached"
            )
        return counts


class _Launch:
    def __init__(
        self, program: Program, start: Start, steps: int, limit: int | None, seed: int | None, checks: Checks
    ) -> None:
        self._program, self._start, self._checks = program, start, checks
        self._steps, self._limit, self._seed = steps, limit, seed

    def workgroups(self, chosen: Sequence[Index], regions: Sequence[Region]) -> Ran:
        """Run the chosen workgroups one after another; returns how often each run of steps was executed."""
        program, memory = self._program, Memory(regions)
        schedule = Schedule(program, steps=self._steps, limit=self._limit, seed=self._seed)
        waves = self._start.make_waves(program, memory)
        with np.errstate(all="ignore"):
            for workgroup in chosen:
                self._start.set_up(waves, workgroup, program.entry, self._lds(len(waves)))
                if self._checks.any:
                    prepare(waves, self._checks)
                schedule.run(waves)
        return dict(schedule.ran)

    def _lds(self, waves: int) -> Lds:
        nbytes = self._start.lds_bytes
        return CheckedLds(nbytes, waves, self._checks) if self._checks.any else Lds(nbytes)


@lru_cache(maxsize=16)
def _code(image: bytes, arch: str | None) -> CodeObject:
    return read_code_object(image, arch)


@lru_cache(maxsize=64)
def _program(image: bytes, kernel: str, checks: Checks, arch: str | None) -> Program:
    code = _code(image, arch)
    wrap = partial(check, target=code.target, checks=checks) if checks.any else None
    return Program(code, code.kernel(kernel), wrap)


def _watched(program: Program, checks: Checks, debug: Debug | None, counts: Counts | None) -> Program:
    """The same kernel, bound again with counts, a trace or a breakpoint around each step."""
    code = program.code
    known = {instruction.pc for instruction in program.instructions}
    for pc in debug.breakpoints if debug else ():
        if pc not in known:
            first, last = min(known), max(known)
            raise SimulatorError(
                f"a breakpoint at pc {pc:#x}, where no instruction of {program.kernel.name} begins; allowed: those "
                f"that the disassembly lists, from {first:#x} to {last:#x}"
            )

    def wrap(instruction: Instruction, step: Step) -> Step:
        step = check(instruction, step, code.target, checks) if checks.any else step
        step = counts.watch(instruction, step, code.target) if counts else step
        return watch(instruction, step, code.target, debug) if debug else step

    return Program(code, program.kernel, wrap)


def _start(program: Program, grid: Index, block: Index, arguments: bytes, dynamic_lds: int) -> Start:
    kernel, target = program.kernel, program.code.target
    if min(*grid, *block) < 1 or block[0] * block[1] * block[2] > 1024:
        raise SimulatorError(f"grid {grid} and block {block}: all at least 1, at most 1024 work-items in a block")
    lds = kernel.lds_bytes + dynamic_lds
    if dynamic_lds < 0 or lds > target.lds_bytes:
        raise SimulatorError(f"{lds} bytes of LDS; {target.name} has {target.lds_bytes} per workgroup")
    if kernel.dynamic_stack:
        raise ObjectError(f"kernel {kernel.name} has a stack of unknown size; that is not modelled")
    segment = kernel_arguments(program.code, kernel, arguments, grid, block, dynamic_lds)
    return Start(program.code, kernel, block, segment, lds)


def _has_global_atomics(program: Program) -> bool:
    return any(
        "atomic" in instruction.name and not instruction.name.startswith("ds_") for instruction in program.instructions
    )
