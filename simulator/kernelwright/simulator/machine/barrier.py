"""The barrier of one workgroup, whole (``s_barrier``) or split into arriving and waiting (gfx12)."""

from __future__ import annotations

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.registers import Registers


class Barrier:
    """Opens whenever all ``members`` waves have arrived once more; a wave that ended without arriving keeps it shut.

    Hardware counts ended waves out; a kernel that relies on that is refused here, because which waves meet at which
    barrier is then an accident.
    """

    def __init__(self, members: int) -> None:
        self.members = members
        self.arrived = 0
        self.opened = 0

    def signal(self, wave: Registers) -> None:
        """``wave`` arrives. Trap if it arrives twice without waiting in between."""
        if wave.signals > wave.waits:
            raise Trap("arrives at the barrier a second time before it waited there")
        wave.signals += 1
        self.arrived += 1
        if self.arrived == self.members:
            self.arrived = 0
            self.opened += 1

    def wait(self, wave: Registers) -> None:
        """``wave`` goes on once all have arrived. Trap if it has not arrived itself."""
        if wave.signals == wave.waits:
            raise Trap("waits at the barrier without having arrived there")
        wave.waits += 1
        if not self.open_for(wave):
            wave.state = "barrier"

    def open_for(self, wave: Registers) -> bool:
        """Whether a wave that waits may go on."""
        return self.opened >= wave.waits
