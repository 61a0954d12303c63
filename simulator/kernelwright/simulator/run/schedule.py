"""Runs the waves of one workgroup, each to its next barrier or in random slices; turns traps into faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import length_hint
from typing import NoReturn

import numpy as np

from kernelwright.simulator.errors import Fault, Trap
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.run.program import Program, Run

_LONGEST_SLICE = 40  # instructions; short enough that waves overtake each other between any two barriers


class Schedule:
    """Executes workgroups of one launch, one after another.

    ``steps`` is the maximum number of instructions of one workgroup, and ``limit`` the maximum over all of them; the
    next instruction is a fault. With a ``seed``, waves take turns in slices of random length, the same for each run of
    a workgroup; without one, each runs to its next barrier, in order.
    """

    def __init__(self, program: Program, *, steps: int, limit: int | None = None, seed: int | None = None) -> None:
        self.program = program
        self.ran: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._steps, self._limit, self._seed = steps, limit, seed
        self._executed = 0  # by the workgroups that have ended
        self._ended = 0  # workgroups
        self._left = 0  # instructions that the current workgroup may still execute
        self._waves: list[Wave] = []

    def run(self, waves: list[Wave]) -> None:
        """Run the waves of a workgroup to completion. Raises the first Fault."""
        self._waves = waves
        allowed = self._left = self._allowed()
        random = None if self._seed is None else np.random.default_rng([self._seed, *waves[0].workgroup])
        while True:
            ready = [wave for wave in waves if self._ready(wave)]
            if not ready:
                break
            if random is None:
                for wave in ready:
                    self._advance(wave)
            else:
                wave = ready[random.integers(len(ready))]
                self._slice(wave, int(random.integers(1, _LONGEST_SLICE + 1)))
        for wave in waves:
            if wave.state != "done":
                ended = [other.index for other in waves if other.state == "done"]
                why = f"waves {ended} ended without it" if ended else "not all waves arrive at it"
                raise self._fault(wave, Trap(f"deadlock: waits at a barrier for ever, {why}"), wave.pc - 1)
        self._executed += allowed - self._left
        self._ended += 1

    def _allowed(self) -> int:
        return self._steps if self._limit is None else min(self._steps, self._limit - self._executed)

    @staticmethod
    def _ready(wave: Wave) -> bool:
        if wave.state == "barrier" and wave.barrier is not None and wave.barrier.open_for(wave):
            wave.state = ""
        return not wave.state

    def _advance(self, wave: Wave) -> None:
        """Run the wave until it waits or ends."""
        run_from = self.program.run_from
        while not wave.state:
            self._execute(wave, run_from(wave.pc))

    def _slice(self, wave: Wave, length: int) -> None:
        while length > 0 and not wave.state:
            run = self.program.cut(wave.pc, length)
            length -= run.stop - run.start
            self._execute(wave, run)

    def _execute(self, wave: Wave, run: Run) -> None:
        steps, start, stop = run
        self._left -= stop - start
        if self._left < 0:
            self._exhaust(wave, self._left + stop - start)
        self.ran[start, stop] += 1
        wave.pc = stop
        at = iter(steps)
        try:
            for step in at:
                step(wave)
        except Trap as trap:
            raise self._fault(wave, trap, stop - 1 - length_hint(at)) from trap
        except (IndexError, ValueError, OverflowError, ZeroDivisionError, TypeError, KeyError) as error:
            failure = Trap(f"the simulator itself failed: {type(error).__name__}: {error}")
            raise self._fault(wave, failure, stop - 1 - length_hint(at)) from error

    def _exhaust(self, wave: Wave, left: int) -> NoReturn:
        """Execute the remaining ``left`` instructions, and fault."""
        self._left = left
        if left:
            self._execute(wave, self.program.cut(wave.pc, left))
        where = positions(self._waves, self.program)
        if self._allowed() < self._steps:
            ran = f"{self._limit} instructions ran, {self._ended} workgroups ended"
            raise self._fault(wave, Trap(f"the instruction limit of the launch is reached: {ran}; {where}"), wave.pc)
        reason = f"an endless loop? The workgroup has executed {self._steps} instructions; {where}"
        raise self._fault(wave, Trap(reason), wave.pc)

    def _fault(self, wave: Wave, trap: Trap, index: int) -> Fault:
        instruction = self.program.instructions[index]
        return Fault(
            trap.reason,
            kernel=self.program.kernel.name,
            workgroup=wave.workgroup,
            wave=wave.index,
            pc=instruction.pc,
            instruction=str(instruction),
            address=trap.address,
            seed=self._seed,
        )


def positions(waves: Sequence[Wave], program: Program) -> str:
    """The position of each wave: ``waves 0, 2 at pc 0x10 (s_nop); wave 1 ended``."""
    standing: dict[str, list[str]] = {}
    for wave in waves:
        if wave.state == "done":
            where = "ended"
        else:
            waits = wave.state == "barrier"
            instruction = program.instructions[wave.pc - waits]
            where = f"{'waits' if waits else 'stands'} at pc {instruction.pc:#x} ({instruction})"
        standing.setdefault(where, []).append(str(wave.index))
    return "; ".join(
        f"wave{'s' if len(indices) > 1 else ''} {', '.join(indices)}: {where}" for where, indices in standing.items()
    )
