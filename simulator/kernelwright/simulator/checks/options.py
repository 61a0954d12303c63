"""The optional checks of a launch; bounds, barriers and unknown instructions are always checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Checks:
    """All checks are off by default, and cost nothing while they are off.

    ``uninitialised``: faults when an address, a branch, EXEC or a value stored to global memory depends on a register,
    LDS or scratch byte that was never written. ``races``: faults when two waves access the same byte of LDS without a
    barrier between them and at least one of them writes. ``waits``: faults when a register or LDS byte is used before
    the wait instruction that its load or store needs.
    """

    uninitialised: bool = False
    races: bool = False
    waits: bool = False

    @property
    def any(self) -> bool:
        """Whether any check is on."""
        return self.uninitialised or self.races or self.waits
