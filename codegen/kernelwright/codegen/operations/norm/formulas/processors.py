"""Predicted time of a norm on a CPU: passes over rows that stay in a cache, or the time of memory.

Rows are shared by as many threads as the launcher takes (launchers/cpu/norm). A pass has separate sums for each vector
of an iteration, so few vectors wait for each other's additions; the rest of a row is done vector by vector. Clock
counts are those of AVX2 and AVX-512 cores of both makers: 4 from one addition to the next that needs its result.
ROW_CLOCKS, THREAD_ELEMENTS, CONVERTED_CLOCKS and QUANTISED_CLOCKS were set by hand, not fitted to measurements.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor

ADDITION_CLOCKS = 4  # until the next that needs its result
VECTOR_CLOCKS = 1  # least clocks of a pass over one vector
CONVERTED_CLOCKS = 1  # additional, for 16-bit elements
QUANTISED_CLOCKS = 1  # for an element that is converted to 8 bits
ROW_CLOCKS = 60  # root, division, sums over lanes
THREAD_ELEMENTS = 32768  # fewest elements of a thread
FLOPS_PER_LANE = 4  # per clock: two multiply-adds


class Problem(NamedTuple):
    """Rows, and the work per row; ``bytes`` are those of all operands."""

    rows: float
    columns: float
    passes: float
    bytes: float
    converted: bool
    quantised: bool


def row_clocks(p: Problem, unroll: float, lanes: float) -> float:
    """Clocks of one row."""
    vectors = ceil(p.columns / lanes)
    together = floor(vectors / unroll) * unroll
    work = VECTOR_CLOCKS + (CONVERTED_CLOCKS if p.converted else 0.0)
    clocks = together * max(work, ADDITION_CLOCKS / unroll) + (vectors - together) * max(work, ADDITION_CLOCKS)
    return ROW_CLOCKS + p.passes * clocks + (p.columns * QUANTISED_CLOCKS if p.quantised else 0.0)


def estimate(p: Problem, unroll: float, device: Device) -> Estimate:
    """The time of a launch."""
    lanes = max(device.rate_fp32 / FLOPS_PER_LANE, 1.0)
    threads = max(min(device.units, p.rows, ceil(p.rows * p.columns / THREAD_ELEMENTS)), 1.0)
    compute = ceil(p.rows / threads) * row_clocks(p, unroll, lanes) / device.clocks_per_us
    memory = p.bytes / device.bytes_per_us
    return Estimate(p.rows, 1.0, compute, 0.0, memory, max(compute, memory))
