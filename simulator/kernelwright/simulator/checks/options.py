"""Which checks a launch makes beyond those that are always on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Checks:
    """All are off by default and then cost nothing.

    ``uninitialised``: a register, LDS or scratch byte that was never written decides an address, a branch, EXEC or
    what is stored to global memory. ``races``: two waves access a byte of LDS, one of them writes, and no barrier lies
    between. ``waits``: a register or LDS byte is used before the wait that its memory instruction needs.
    """

    uninitialised: bool = False
    races: bool = False
    waits: bool = False

    @property
    def any(self) -> bool:
        """Whether any is on."""
        return self.uninitialised or self.races or self.waits
