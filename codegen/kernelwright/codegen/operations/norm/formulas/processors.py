"""The time of a norm on a CPU: passes over rows that stay in a cache, or what memory takes.

Rows are shared by as many threads as the launcher takes (launchers/cpu/norm). A pass adds to sums of its own for each
vector of an iteration, so few vectors wait for each other's additions; what an iteration does not fill is done vector
by vector. Numbers of clocks are those of AVX2 and AVX-512 cores of both makers: 4 from one addition to the next that
needs it. ROW_CLOCKS, THREAD_ELEMENTS, CONVERTED_CLOCKS and QUANTISED_CLOCKS were set by hand, and fitted to no
measurements.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor

ADDITION_CLOCKS = 4  # until the next that needs its result
VECTOR_CLOCKS = 1  # of a pass over one vector, at least
CONVERTED_CLOCKS = 1  # more, of 16-bit elements
QUANTISED_CLOCKS = 1  # of an element that is converted to 8 bits
ROW_CLOCKS = 60  # root, division, sums over lanes
THREAD_ELEMENTS = 32768  # of a thread, at least
FLOPS_PER_LANE = 4  # per clock: two multiply-adds


class Problem(NamedTuple):
    """Rows, and what is done with each; ``bytes`` are those of all operands."""

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
