"""The device of a launch and its predicted time: what all time formulas take and return."""

from __future__ import annotations

from typing import NamedTuple


class Device(NamedTuple):
    """A device as formulas see it, for one element type of the operands."""

    units: float  # cores, compute units or multiprocessors that the launch may use
    clocks_per_us: float
    bytes_per_us: float  # stated memory bandwidth
    rate: float  # operations on the operands' type per clock and unit; 1 where the architecture states none
    rate_fp32: float  # rate of fp32; 0 where the architecture states none
    lds_bytes: float  # LDS or shared memory per workgroup


class Estimate(NamedTuple):
    """The predicted time of a launch, and its parts."""

    tiles: float = 0.0  # over all of k; register blocks on CPUs
    waves: float = 0.0
    compute_us: float = 0.0  # for all waves
    fill_us: float = 0.0  # for all waves: operands from caches to LDS; 0 on CPUs
    memory_us: float = 0.0
    total_us: float = 0.0
    useful: float = 1.0  # share of the padded multiplications that the problem needs
