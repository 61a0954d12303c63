"""Runs the waves of one workgroup, each to its next barrier or in random slices; turns traps into faults."""

from __future__ import annotations

from collections import defaultdict
from operator import length_hint

import numpy as np

from kernelwright.simulator.errors import Fault, Trap
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.run.program import Program, Run

_LONGEST_SLICE = 40  # instructions; short enough that waves overtake each other between any two barriers


class Schedule:
    """Executes workgroups of one launch.

    ``steps`` is the most instructions that one workgroup may execute; an endless loop faults there. With ``random``,
    waves take turns in slices of random length; without it, each runs to its next barrier, in order. ``random`` may be
    replaced between workgroups.
    """

    def __init__(self, program: Program, *, steps: int, random: np.random.Generator | None = None) -> None:
        self.program = program
        self.ran: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._limit = steps
        self._left = steps
        self.random = random

    def run(self, waves: list[Wave]) -> None:
        """Run the waves of a workgroup to their ends. Raises the first Fault."""
        self._left = self._limit
        while True:
            ready = [wave for wave in waves if self._ready(wave)]
            if not ready:
                break
            if self.random is None:
                for wave in ready:
                    self._advance(wave)
            else:
                wave = ready[self.random.integers(len(ready))]
                self._slice(wave, int(self.random.integers(1, _LONGEST_SLICE + 1)))
        for wave in waves:
            if wave.state != "done":
                ended = [other.index for other in waves if other.state == "done"]
                why = f"waves {ended} ended without it" if ended else "not all waves arrive at it"
                raise self._fault(wave, Trap(f"deadlock: waits at a barrier for ever, {why}"), wave.pc - 1)

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
            endless = Trap(f"an endless loop? The workgroup has executed {self._limit} instructions")
            raise self._fault(wave, endless, start)
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
        )
