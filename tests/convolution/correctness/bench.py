"""Poses problems to the kernels of a library in guarded, poisoned memory and holds the results against float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from convolution.correctness.reference import bound, channels_last, convolve, finished
from gemm.correctness.guarded import Block
from kernelwright.dispatch import ConvProblem, Dispatcher

DTYPES: dict[str, Any] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


def _block(shape: Sequence[int], dtype: str, strides: Sequence[int] | None = None) -> Block:
    if strides is None:
        strides = [int(np.prod(shape[dim + 1 :], dtype=np.int64)) for dim in range(len(shape))]
    return Block(tuple(shape), tuple(strides), DTYPES[dtype])


def _tensor(problem: ConvProblem, operand: str) -> Block:
    """x or y of a problem, in the order of its layout."""
    shape, strides = (problem.x_shape, problem.stride_x) if operand == "x" else (problem.y_shape, problem.stride_y)
    assert strides is not None
    n, c, *rest = strides
    return _block(shape, problem.dtype, (n, c, *rest) if problem.layout == "ngchw" else (n, *rest, c))


def check(dispatcher: Dispatcher, problem: ConvProblem, seed: int, whole: bool, repeats: int = 2) -> str:
    """AssertionError unless the chosen kernel is right, several times, and touches nothing else; returns its name.

    With ``whole`` operands are small integers, whose sums are exact, and so must the results be before rounding.
    """
    p, rng = problem, np.random.default_rng(seed)
    kinds = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[p.direction]
    a, b, out = (_block(p.w_shape, p.dtype) if kind == "w" else _tensor(p, kind) for kind in kinds)
    bias = _block((p.k,), p.dtype) if p.bias else None
    residual = _tensor(p, "y") if p.residual else None
    old = rng.integers(-2, 3, out.values.shape).astype(out.dtype) if p.beta else None
    operands = [one for one in (a, b, bias, residual) if one is not None]
    for one in operands:
        values = rng.integers(-2, 3, one.values.shape) if whole else rng.standard_normal(one.values.shape)
        one.values[...] = values.astype(one.dtype)
    plan = dispatcher.plan(p)
    results = []
    for _ in range(repeats):
        out.clear()
        if old is not None:
            out.values[...] = old
        plan(
            a.values, b.values, out.values, bias=None if bias is None else bias.values,
            residual=None if residual is None else residual.values,
        )  # fmt: skip
        for one in (*operands, out):
            one.assert_untouched_around()
        results.append(out.values.copy())
    assert all(result.tobytes() == results[0].tobytes() for result in results), f"{p}: results differ between launches"
    _compare(p, a, b, bias, residual, old, results[0], whole, plan.kernel.name)
    return plan.kernel.name


def _compare(
    p: ConvProblem, a: Block, b: Block, bias: Block | None, residual: Block | None, old: Any, result: Any, whole: bool,
    kernel: str,
) -> None:  # fmt: skip
    def plain(one: Any) -> Any:
        values = one.values if isinstance(one, Block) else one
        return values if values.ndim == 1 else channels_last(values, p)

    extras = [None if one is None else plain(one) for one in (old, bias, residual)]
    first, second = plain(a), plain(b)
    exact = finished(p, convolve(p, first, second), *extras)
    got = plain(result).astype(np.float64)
    assert got.shape == exact.shape
    if whole and p.activation in ("none", "relu"):
        wanted = exact.astype(DTYPES[p.dtype]).astype(np.float64)
        assert np.array_equal(got, wanted), f"{p} by {kernel}: {int((got != wanted).sum())} of {got.size} are wrong"
        return
    sums = abs(p.alpha) * convolve(p, abs(first.astype(np.float64)), abs(second.astype(np.float64)))
    magnitude = sums + sum(abs(one.astype(np.float64)) for one in extras if one is not None)
    error, allowed = abs(got - exact), bound(p, magnitude, exact)
    assert (error <= allowed).all(), f"{p} by {kernel}: {np.nanmax(error / allowed)} times the bound"
