"""Whether CK Tile can spread a copy over the work-items of a workgroup.

The arithmetic of core/algorithm/static_encoding_pattern.hpp (thread and warp raked: the same conditions).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Copy:
    """``rows`` rows of ``row`` contiguous elements, moved in vectors of ``vector``, or fewer if not ``exact``."""

    what: str
    rows: int
    row: int
    vector: int
    exact: bool = False

    def problem(self, wave_size: int, waves: int) -> str:
        """Why the copy cannot be spread over ``waves`` waves of ``wave_size`` lanes; "" if it can."""
        lanes = wave_size * waves
        most = self.rows * self.row // lanes
        if most == 0:
            return f"{self.rows} x {self.row} elements are fewer than {lanes} work-items"
        vector = self.vector if self.exact else min(self.vector, most)
        if self.row % self.vector or self.row % vector:
            return f"rows of {self.row} elements are no whole vectors of {vector}"
        per_row = self.row // vector
        if per_row > wave_size or wave_size % per_row:
            return f"a row takes {per_row} work-items, which do not divide a wave of {wave_size}"
        step = wave_size // per_row * waves
        if self.rows % step:
            return f"the workgroup copies {step} rows at a time, which do not divide {self.rows} rows"
        return ""
