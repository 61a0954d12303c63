"""The optional checks of a launch; bounds, barriers and unknown instructions are always checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Checks:
    """All checks are off by default and cost nothing while off.

    ``uninitialised``: faults when an address, a branch, EXEC or a value stored to global memory depends on a register,
    LDS or scratch byte that was never written. ``races``: faults when two waves access the same byte of LDS without a
    barrier between them and at least one of them writes; with ``equal_writes``, for kernels whose waves all write the
    same values, a write that leaves LDS unchanged does not count. ``waits``: faults when a register or LDS byte is used
    before the wait instruction that its load or store needs.

    ``seeds``: the launch is repeated, from the same memory, once per seed of a random order of waves; a fault names its
    seed. Results and report are those of the first run. Raises ValueError for seeds without a check, and for a seed
    that is not an integer from 0 on.
    """

    uninitialised: bool = False
    races: bool = False
    waits: bool = False
    seeds: tuple[int, ...] = ()
    equal_writes: bool = False

    def __post_init__(self) -> None:
        """Refuse seeds that would have no effect."""
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if any(type(seed) is not int or seed < 0 for seed in self.seeds):
            raise ValueError(f"seeds are {self.seeds!r}; allowed: integers from 0 on")
        if self.seeds and not self.any:
            raise ValueError("seeds repeat a launch for its checks; switch on uninitialised, races or waits")

    @property
    def any(self) -> bool:
        """Whether any check is on."""
        return self.uninitialised or self.races or self.waits
