"""State of the checks for one wave: which registers are set, and which loads are outstanding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.checks.counters import Access, Traffic
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.checks.scratch import CheckedScratch
from kernelwright.simulator.machine.registers import VGPRS
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import POISON

Check = Callable[[Wave], None]
Around = tuple[Check | None, Check | None]  # what runs before a step and after it


class WaveChecks:
    """State of the checks for one wave: a Wave's ``checks``.

    ``known`` says per row and lane, ``scalars`` per number, whether a register is set. ``access`` is the current memory
    instruction; ``stored`` and ``loaded`` are (dwords, lanes) of scratch accesses, see
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
    """Attach the checks' state to the waves of a workgroup before it starts."""
    for wave in waves:
        wave.checks = WaveChecks(wave)
        if checks.uninitialised and wave.scratch is not None:
            wave.scratch = CheckedScratch(wave.scratch.nbytes, wave.lanes)


def vector_name(row: int) -> str:
    """``v3`` or ``a3``: the name of a row of the wave's vector registers."""
    return f"v{row}" if row < VGPRS else f"a{row - VGPRS}"
