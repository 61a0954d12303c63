"""Runs one kernel launch, from a code object and host memory to a report."""

from __future__ import annotations

from collections.abc import Sequence
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
from kernelwright.simulator.errors import ObjectError, SimulatorError
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory, Region
from kernelwright.simulator.machine.regions import Buffer, constant, direct, shared
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
    random length; with None, each runs to its next barrier, in order. ``steps`` is the most instructions that one
    workgroup may execute. ``debug`` sets traces and breakpoints, and implies one process. Raises SimulatorError for
    ``processes`` or ``steps`` below 1.
    """

    def __init__(
        self,
        *,
        checks: Checks = Checks(),  # noqa: B008  (frozen)
        processes: int = 1,
        seed: int | None = None,
        steps: int = STEPS,
        debug: Debug | None = None,
    ) -> None:
        if processes < 1 or steps < 1:
            raise SimulatorError(f"processes ({processes}) and steps ({steps}) must be at least 1")
        self._checks, self._processes, self._seed, self._steps = checks, processes, seed, steps
        self._debug = debug

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
    ) -> LaunchReport:
        """Run ``kernel`` of the code object ``image`` to its end.

        ``grid`` is in workgroups, ``block`` in work-items, ``dynamic_lds`` in bytes. ``arguments`` is the kernel
        argument segment without hidden arguments. The kernel may access only ``buffers``, which change in place; their
        contents are undefined after a Fault. Raises ObjectError for an image or kernel that cannot be run,
        SimulatorError for illegal sizes, Fault for an illegal action of the kernel.
        """
        program = _program(image, kernel, self._checks)
        if self._debug is not None:
            program = _watched(program, self._checks, self._debug)
        start = _start(program, grid, block, arguments, dynamic_lds)
        run = _Launch(program, start, self._steps, self._seed, self._checks)
        workgroups = [(x, y, z) for z, y, x in product(*(range(extent) for extent in reversed(grid)))]
        fixed = [
            constant(ARGUMENT_ADDRESS, start.arguments, "the kernel's arguments"),
            constant(CODE_ADDRESS, program.code.memory, "the code object"),
        ]
        alone = self._debug is not None or _has_global_atomics(program)
        count = 1 if alone else min(self._processes, len(workgroups))
        ran: list[Ran]
        if count == 1:
            ran = [run.workgroups(workgroups, fixed + direct(buffers))]
        else:
            with shared(buffers) as regions:
                memory = fixed + regions
                ran = run_forked([partial(run.workgroups, workgroups[n::count], memory) for n in range(count)])
        counts = counts_of(program, ran)
        waves = start.waves * len(workgroups)
        return LaunchReport(kernel, program.code.target.name, len(workgroups), waves, sum(counts.values()), counts)


class _Launch:
    def __init__(self, program: Program, start: Start, steps: int, seed: int | None, checks: Checks) -> None:
        self._program, self._start, self._steps, self._seed, self._checks = program, start, steps, seed, checks

    def workgroups(self, chosen: Sequence[Index], regions: Sequence[Region]) -> Ran:
        """Run the chosen workgroups one after another; returns how often each run of steps was executed."""
        program, memory = self._program, Memory(regions)
        schedule = Schedule(program, steps=self._steps)
        waves = self._start.make_waves(program, memory)
        with np.errstate(all="ignore"):
            for workgroup in chosen:
                if self._seed is not None:
                    schedule.random = np.random.default_rng([self._seed, *workgroup])
                self._start.set_up(waves, workgroup, program.entry, self._lds(len(waves)))
                if self._checks.any:
                    prepare(waves, self._checks)
                schedule.run(waves)
        return dict(schedule.ran)

    def _lds(self, waves: int) -> Lds:
        nbytes = self._start.lds_bytes
        return CheckedLds(nbytes, waves, self._checks) if self._checks.any else Lds(nbytes)


@lru_cache(maxsize=16)
def _code(image: bytes) -> CodeObject:
    return read_code_object(image)


@lru_cache(maxsize=64)
def _program(image: bytes, kernel: str, checks: Checks) -> Program:
    code = _code(image)
    wrap = partial(check, target=code.target, checks=checks) if checks.any else None
    return Program(code, code.kernel(kernel), wrap)


def _watched(program: Program, checks: Checks, debug: Debug) -> Program:
    """The same kernel, bound again with a trace or breakpoint around each step."""
    code = program.code
    known = {instruction.pc for instruction in program.instructions}
    for pc in debug.breakpoints:
        if pc not in known:
            first, last = min(known), max(known)
            raise SimulatorError(
                f"a breakpoint at pc {pc:#x}, where no instruction of {program.kernel.name} begins; allowed: those "
                f"that the disassembly lists, from {first:#x} to {last:#x}"
            )

    def wrap(instruction: Instruction, step: Step) -> Step:
        checked = check(instruction, step, code.target, checks) if checks.any else step
        return watch(instruction, checked, code.target, debug)

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
    return Start(program.code, kernel, block, kernel_arguments(kernel, arguments, grid, block), lds)


def _has_global_atomics(program: Program) -> bool:
    return any(
        "atomic" in instruction.name and not instruction.name.startswith("ds_") for instruction in program.instructions
    )
