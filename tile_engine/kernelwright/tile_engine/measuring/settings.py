"""Settings for timing and checking kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Settings for timing and checking a kernel.

    :ivar warmup: launches before the first timed one.
    :ivar repeat: launches per round; 0 for as many as fit into ``duration_s`` divided by ``rounds``.
    :ivar warm_s: seconds of launches before the first round, until clocks have ramped up.
    :ivar duration_s: total seconds of timed launches.
    :ivar rounds: number of rounds, in each of which the kernels of a batch take turns; times are medians over rounds.
    :ivar flush_cache: whether to overwrite memory of the size of the last-level cache before each round.
    :ivar rotating_buffers: number of operand sets that launches rotate through, so that a set has left the cache when
        it is used again; 1 for the same operands in each launch.
    :ivar verify: whether to compare results with exact ones. An incorrect kernel is not timed.
    :ivar seed: seed of the operands.
    """

    warmup: int = 3
    repeat: int = 0
    warm_s: float = 0.1
    duration_s: float = 0.2
    rounds: int = 5
    flush_cache: bool = False
    rotating_buffers: int = 1
    verify: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a setting that makes no measurement possible."""
        for name, least in (("warmup", 0), ("repeat", 0), ("rounds", 1), ("rotating_buffers", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed: at least {least}")
        if not self.warm_s >= 0:
            raise ValueError(f"warm-clocks is {self.warm_s} s; allowed: at least 0")
        if not self.duration_s > 0:
            raise ValueError(f"duration is {self.duration_s} s; allowed: more than 0")

    def as_json(self) -> Mapping[str, Any]:
        """The fields as JSON values."""
        return asdict(self)
