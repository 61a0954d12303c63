"""Check arrays of a norm against a plan's problem: arrays with the shape of x, and arrays with that of a row."""

from __future__ import annotations

import math

from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.problems.norm.problem import NormProblem

NAMES = ("x", "weight", "bias", "residual", "dy", "out", "sum", "scales", "dweight", "dbias")
"""Names of the operands in errors, in the order of ``kw_norm_args``."""
INPUTS = 5

_STRIDES = {
    "x": "stride_x", "residual": "stride_residual", "dy": "stride_dy", "out": "stride_y", "sum": "stride_sum",
}  # fmt: skip


def wanted(problem: NormProblem) -> dict[str, bool]:
    """Whether a problem has each operand, by name."""
    forward, weight, bias = not problem.backward, problem.weight, problem.bias
    given = (True, weight, bias and forward, problem.residual, problem.backward)
    written = (True, problem.residual and forward, problem.quantised, weight and not forward, bias and not forward)
    return dict(zip(NAMES, (*given, *written), strict=True))


def as_rows(array: ArrayView, name: str) -> tuple[int, int, int]:
    """Rows, columns and row stride, in elements, of an array (…, columns).

    Raises ArrayError for arrays without dimensions or columns, for columns that are not contiguous, and for rows that
    are not equally spaced.
    """
    if not array.shape or array.shape[-1] < 1:
        raise ArrayError(f"{name} has shape {array.shape}; allowed: (…, columns) with one column or more")
    *extents, columns = array.shape
    *strides, unit = array.strides
    rows = math.prod(extents)
    if columns > 1 and unit != 1 and rows:
        raise ArrayError(f"{name} has strides {array.strides}; allowed: columns side by side, stride 1; pass a copy")
    stride, reach = None, 0
    for extent, step in zip(reversed(extents), reversed(strides), strict=True):
        if extent == 1 or not rows:
            continue
        if step < 0 or (stride is not None and step != reach):
            raise ArrayError(f"{name} has strides {array.strides}; allowed: rows equally far apart; pass a copy")
        stride, reach = (step if stride is None else stride), step * extent
    return rows, columns, columns if stride is None else stride


def check_operand(array: ArrayView, name: str, problem: NormProblem, memory: str) -> None:
    """Raise ArrayError unless a plan for ``problem`` takes ``array`` as its operand ``name``."""
    if array.device != memory:
        raise ArrayError(f"{name} is on {array.device}; allowed for this plan: {memory}")
    if NAMES.index(name) >= INPUTS and array.readonly:
        raise ArrayError(f"{name} cannot be written to; pass a writable array")
    dtype = {"out": problem.dtype_y, "scales": "fp32"}.get(name, problem.dtype if name in _STRIDES else problem.dtype_w)
    if array.dtype != dtype:
        raise ArrayError(f"{name} is {array.dtype}; allowed for this plan: {dtype}")
    if name in _STRIDES:
        rows, columns, stride = as_rows(array, name)
        if (rows, columns) != (problem.rows, problem.columns):
            raise ArrayError(f"{name} has shape {array.shape}; allowed: {problem.rows} rows of {problem.columns}")
        if rows > 1 and stride != getattr(problem, _STRIDES[name]):
            allowed = getattr(problem, _STRIDES[name])
            raise ArrayError(f"rows of {name} are {stride} elements apart; allowed for this plan: {allowed}")
        return
    count = problem.rows if name == "scales" else problem.columns
    shape_fits = math.prod(array.shape) == count if name == "scales" else array.shape == (count,)
    if not shape_fits:
        raise ArrayError(f"{name} has shape {array.shape}; allowed: {count} numbers")
    if not array.dense:
        raise ArrayError(f"{name} has strides {array.strides}; allowed: numbers side by side; pass a copy")
