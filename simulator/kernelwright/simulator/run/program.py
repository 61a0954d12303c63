"""A kernel as steps: each static instruction is decoded and bound once; straight-line runs are executed in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kernelwright.simulator.checks.allocation import beyond_allocation
from kernelwright.simulator.code.decode import decode
from kernelwright.simulator.code.descriptor import KernelDescriptor
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.errors import ObjectError, Trap, Unmodelled
from kernelwright.simulator.instructions.semantics import Step, build, ends_run
from kernelwright.simulator.machine.wave import Wave

Wrap = Callable[[Instruction, Step], Step]


class Run(NamedTuple):
    """Steps [``start``, ``stop``) of a program; only the last of them may branch."""

    steps: tuple[Step, ...]
    start: int
    stop: int


class Program:
    """The functions of a kernel: its entry function, and others as soon as they are called.

    ``wrap`` wraps every step (the checks do). An unmodelled instruction becomes a step that raises Unmodelled, and one
    that uses registers beyond the kernel's allocation a step that raises a Trap, because not every static instruction
    is executed.
    """

    def __init__(self, code: CodeObject, kernel: KernelDescriptor, wrap: Wrap | None = None) -> None:
        self.code = code
        self.kernel = kernel
        self.instructions: list[Instruction] = []
        self.steps: list[Step] = []
        self.labels = _Labels(self)
        self._wrap = wrap
        self._runs: dict[int, Run] = {}
        self._ends: list[int] = []  # index after the run that an instruction belongs to
        self._bound: dict[bytes, Step] = {}
        self.entry = self.labels[kernel.entry - code.text_start]

    def add_function(self, pc: int) -> None:
        """Decode and bind the function that contains text offset ``pc``. Raises ObjectError if no function does."""
        function = self.code.function_at(pc)
        first = len(self.steps)
        for instruction in decode(
            self.code.text, self.code.target, function.address, function.address + function.nbytes
        ):
            self.labels[instruction.pc] = len(self.steps)
            self.instructions.append(instruction)
            self.steps.append(self._bind(instruction))
        self.instructions.append(Instruction(function.address + function.nbytes, 0, "", "end of function"))
        self.steps.append(_run_out)
        self._ends += [0] * (len(self.steps) - first)
        end = len(self.steps)
        for index in reversed(range(first, len(self.steps))):
            end = index + 1 if ends_run(self.instructions[index].name) else end
            self._ends[index] = end

    def run_from(self, index: int) -> Run:
        """The straight-line run that starts at step ``index``."""
        run = self._runs.get(index)
        if run is None:
            run = self._runs[index] = self.cut(index, len(self.steps))
        return run

    def cut(self, start: int, limit: int) -> Run:
        """As :meth:`run_from`, with at most ``limit`` steps."""
        stop = min(self._ends[start], start + limit)
        return Run(tuple(self.steps[start:stop]), start, stop)

    def _bind(self, instruction: Instruction) -> Step:
        """The step of an instruction. Equal machine code shares one step, unless its semantics depend on its pc."""
        key = self.code.text[instruction.pc : instruction.pc + instruction.size]
        shared = self._wrap is None and not ends_run(instruction.name)
        if shared and key in self._bound:
            return self._bound[key]
        try:
            step = build(instruction, self.code.target)
            outside = beyond_allocation(instruction, self.code.target, self.kernel.registers)
            step = step if outside is None else _trap(outside)
        except Unmodelled as error:
            step = _unmodelled(error.reason)
        if self._wrap is not None:
            step = self._wrap(instruction, step)
        if shared:
            self._bound[key] = step
        return step


class _Labels(dict[int, int]):
    """Text offset → index of the step there; decodes a function at its first use."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program

    def __missing__(self, pc: int) -> int:
        try:
            if pc not in self:
                self._program.add_function(pc)
        except ObjectError as error:
            raise Trap(f"goes to {pc:#x}: {error}") from error
        if pc not in self:
            raise Trap(f"goes to {pc:#x}, the middle of an instruction")
        return self[pc]


def _unmodelled(reason: str) -> Step:
    def step(wave: Wave) -> None:
        raise Unmodelled(reason)

    return step


def _trap(reason: str) -> Step:
    def step(wave: Wave) -> None:
        raise Trap(reason)

    return step


def _run_out(wave: Wave) -> None:
    raise Trap("runs past the end of its function")
