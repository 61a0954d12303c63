"""Which problems a GPU kernel serves, and how many workgroups take its rows, on AMD and NVIDIA GPUs alike."""

from __future__ import annotations

from kernelwright.codegen.formulas.refusals import Invalid, Refusal
from kernelwright.codegen.formulas.widths import fits_int32, fits_int64, fits_uint32, parts
from kernelwright.codegen.operations.norm.rules.checks import is_backward, is_legal, traits_match
from kernelwright.codegen.operations.norm.rules.structs import Problem, Traits

HEADER = "kernelwright/norm/gpu/conditions.h"
PREFIX = "kw_norm_gpu"

# Runs of rows whose gradients of weights are added up by themselves: at most so many, at least so many where rows
# suffice, with up to so many rows in between. They depend on the problem alone, and so do the bits of sums.
MOST_SLICES = 512
FEW_SLICES = 128
SHORT_SLICE = 4
# Columns that the device counts in 32 bits, with the vectors of a row of threads behind the last one.
MOST_COLUMNS = 1073741824
# Of the kernel that adds slices up: columns of a workgroup.
SUM_COLUMNS = 32


def gradients(p: Problem) -> int:
    """How many gradients of weight and bias are asked for."""
    if not is_backward(p):
        return 0
    return (1 if p.weight else 0) + (1 if p.bias else 0)


def rows_per_slice(p: Problem) -> int:
    """Rows that a row of threads takes one after the other."""
    if gradients(p) == 0:
        return 1
    return max(parts(p.rows, MOST_SLICES), max(min(SHORT_SLICE, parts(p.rows, FEW_SLICES)), 1))


def slices(p: Problem) -> int:
    """Runs of rows."""
    return parts(p.rows, rows_per_slice(p))


def workgroups(t: Traits, p: Problem) -> int:
    """Of a launch."""
    return parts(slices(p), t.rows)


def workspace(p: Problem) -> int:
    """Bytes of the sums of slices, which are fp32."""
    return slices(p) * gradients(p) * (p.columns * 4)


def sum_workgroups(p: Problem) -> int:
    """Of the launch that adds slices up."""
    return gradients(p) * parts(p.columns, SUM_COLUMNS)


def counts_fit(t: Traits, p: Problem) -> Refusal:
    """Columns, workgroups and threads are counted in 32 bits."""
    if p.columns > MOST_COLUMNS:
        return f"a row has {p.columns} columns; allowed: up to {MOST_COLUMNS}"
    count = workgroups(t, p)
    if not fits_int32(count) or not fits_uint32(count * (t.rows * t.threads)):
        return f"{p.rows} rows take {count} workgroups, more than a launch can have; share them among launches"
    if not fits_int64(workspace(p)):
        return f"sums of {p.rows} rows do not fit into memory"
    return None


def check(t: Traits, p: Problem) -> Refusal:
    """What is checked of a problem but the struct itself."""
    if p.rows < 0 or p.columns < 1:
        return Invalid(f"the problem is {p.rows} x {p.columns}; allowed: 0 x 1 and more")
    return is_legal(p) or traits_match(t, p) or counts_fit(t, p)
