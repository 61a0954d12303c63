"""The barrier of one workgroup, combined (``s_barrier``) or split into arriving and waiting (gfx12)."""

from __future__ import annotations

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.registers import Registers


class Barrier:
    """Opens when all ``members`` waves have arrived again; a wave that ended without arriving keeps it closed.

    Hardware no longer counts ended waves. A kernel that relies on that is refused here, because which waves meet at
    which barrier is then accidental.
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
        """``wave`` continues once all have arrived. Trap if it has not arrived itself."""
        if wave.signals == wave.waits:
            raise Trap("waits at the barrier without having arrived there")
        wave.waits += 1
        if not self.open_for(wave):
            wave.state = "barrier"

    def open_for(self, wave: Registers) -> bool:
        """Whether a waiting wave may continue."""
        return self.opened >= wave.waits
