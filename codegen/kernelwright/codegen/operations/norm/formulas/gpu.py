"""Predicted time of a norm on a GPU: memory moves its operands, and workgroups wait for it and for each other.

Constants are set by hand until they are measured. A row larger than the registers of its threads is read again from a
cache by each further pass.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil, floor

LATENCY_CLOCKS = 900  # of memory, from a load to its result
REDUCTION_CLOCKS = 150  # across the lanes of a wave, with a barrier where a row has several waves
ELEMENT_CLOCKS = 6  # per element and pass, for a thread that has its share of a unit's lanes
UNIT_LANES = 128  # lanes that work at once
UNIT_THREADS = 1536  # threads that a unit holds, with the registers that norm kernels use
MOST_GROUPS = 16  # most workgroups of a unit
CACHE_SHARE = 0.3  # time to read a byte again, as a share of the time from memory
MEMORY_SHARE = 0.85  # most of the stated rate
SUM_CLOCKS = 3000  # least clocks of the kernel that adds up slices


class Problem(NamedTuple):
    """Rows, and the work per row; ``bytes`` are those of all operands, ``item_bytes`` those of an element."""

    rows: float
    columns: float
    passes: float
    bytes: float
    item_bytes: float
    sums: float  # bytes of the slices' sums, for gradients


class Kernel(NamedTuple):
    """Rows of a workgroup, threads of a row, elements of an access, and accesses that a thread keeps."""

    rows: float
    threads: float
    vector: float
    unroll: float


def group_clocks(p: Problem, k: Kernel) -> float:
    """Clocks of a workgroup alone on a unit."""
    elements = ceil(p.columns / (k.threads * k.vector)) * k.vector
    lanes = max(k.rows * k.threads / UNIT_LANES, 1.0)
    beyond = max(elements / (k.vector * k.unroll) - 1.0, 0.0) * LATENCY_CLOCKS
    return LATENCY_CLOCKS + p.passes * (REDUCTION_CLOCKS + elements * ELEMENT_CLOCKS * lanes) + beyond * p.passes


def estimate(p: Problem, k: Kernel, device: Device) -> Estimate:
    """The time of a launch."""
    groups = ceil(p.rows / k.rows)
    together = max(min(floor(UNIT_THREADS / (k.rows * k.threads)), MOST_GROUPS), 1.0)
    clocks = group_clocks(p, k)
    # Groups of a unit share its lanes and hide each other's latency.
    work = clocks - LATENCY_CLOCKS
    turns = ceil(groups / (device.units * together))
    compute = turns * max(clocks, together * work) / device.clocks_per_us
    again = max(p.columns - k.threads * k.vector * k.unroll, 0.0) * p.rows * (p.passes - 1.0) * p.item_bytes
    moved = p.bytes + again * CACHE_SHARE + 2.0 * p.sums
    memory = moved / (device.bytes_per_us * MEMORY_SHARE)
    fill = (SUM_CLOCKS if p.sums > 0.0 else 0.0) / device.clocks_per_us
    return Estimate(groups, turns, compute, fill, memory, max(compute, memory) + fill)
