"""``Dispatcher.rms_norm`` and ``layer_norm``: shapes, results that are allocated, refusals, plans and rankings."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, NoKernelError, ProblemError
from kernelwright.dispatch.operations.norm import NormPlan, NormProblem
from norm import reference

X = np.random.default_rng(0).standard_normal((3, 4, 5, 40)).astype(np.float32)
W = np.linspace(-1, 1, 40, dtype=np.float32)


def test_leading_dimensions_are_rows_and_results_are_allocated(dispatcher: Dispatcher) -> None:
    exact = reference.forward(X, "rms", 1e-6, W, None)
    for _ in range(3):  # the second call is recognised by its metadata
        y = dispatcher.rms_norm(X, W)
        assert y.shape == X.shape and np.allclose(y, exact, rtol=1e-5, atol=1e-6)
    y, total = dispatcher.rms_norm(X, W, residual=X)
    assert np.array_equal(total, X + X) and y.shape == X.shape
    quantised, total, scales = dispatcher.layer_norm(X, W, W, residual=X, dtype="int8")
    assert (quantised.dtype, scales.shape, total.shape) == (np.int8, X.shape[:-1], X.shape)
    dx, dweight = dispatcher.layer_norm_backward(X, X, W)
    assert dx.shape == X.shape and dweight.shape == W.shape
    single = dispatcher.layer_norm(X[0, 0, 0])
    assert single.shape == (40,)


def test_rows_that_lie_equally_far_apart_are_read_where_they_are(dispatcher: Dispatcher) -> None:
    wide = np.random.default_rng(1).standard_normal((6, 7, 64)).astype(np.float32)
    y = dispatcher.rms_norm(wide[..., 8:48], W)
    assert np.allclose(y, reference.forward(wide[..., 8:48], "rms", 1e-6, W, None), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArrayError, match="rows equally far apart; pass a copy"):
        dispatcher.rms_norm(wide[:, :3, :40], W)
    with pytest.raises(ArrayError, match="columns side by side"):
        dispatcher.rms_norm(wide[0].T)


def test_the_result_may_be_the_input(dispatcher: Dispatcher) -> None:
    x, r = X.copy(), X[::-1].copy()
    exact = dispatcher.rms_norm(X, W)
    assert dispatcher.rms_norm(x, W, x) is x and np.array_equal(x, exact)
    wanted = dispatcher.layer_norm(X, W, residual=r.copy())
    y, total = dispatcher.layer_norm(X, W, residual=r, sum=r)
    assert total is r and np.array_equal(y, wanted[0]) and np.array_equal(r, wanted[1])


CASES: list[tuple[dict[str, Any], str]] = [
    ({"weight": W[:39]}, r"weight has shape \(39,\); allowed: 40 numbers"),
    ({"weight": W.astype(np.float16)}, "dtype_w is 'fp16'; allowed: fp32"),
    ({"out": np.empty((60, 40), np.float16)}, "dtype_y is 'fp16'"),
    ({"out": np.empty((60, 41), np.float32)}, "they must be equal"),
    ({"sum": X.copy()}, "sum is given without a residual"),
    ({"residual": X, "sum": X[:2]}, "they must be equal"),
    ({"dtype": "int32"}, "dtype_y is 'int32' .did you mean 'int8'.*; allowed: fp32, int8, fp8"),
    ({"epsilon": -1.0}, "epsilon is -1.0; allowed: a finite number, 0 or more"),
    ({"epsilon": float("nan")}, "epsilon is nan"),
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_what_does_not_fit_is_refused(dispatcher: Dispatcher, change: dict[str, Any], message: str) -> None:
    given = {"weight": W, **change}
    with pytest.raises((ArrayError, ProblemError), match=message):
        dispatcher.rms_norm(X, **given)


def test_results_share_memory_with_nothing_else(dispatcher: Dispatcher) -> None:
    memory = np.zeros((61, 40), np.float32)
    with pytest.raises(ArrayError, match="y shares memory with x"):
        dispatcher.rms_norm(memory[:60], None, memory[1:])
    with pytest.raises(ArrayError, match="shares memory"):
        dispatcher.rms_norm(memory[:60], memory[3], memory[:60])


def test_plans_and_rankings_say_what_runs(dispatcher: Dispatcher) -> None:
    problem = NormProblem("layer", 60, 40, weight=True, bias=True, residual=True, epsilon=1e-5)
    plan = dispatcher.plan(problem)
    assert isinstance(plan, NormPlan) and _read(problem) == problem
    explained = dispatcher.explain(problem)
    assert explained.chosen is not None and explained.chosen.name == plan.kernel.name
    assert "layer norm fp32 60x40 weight bias residual" in str(explained)
    with pytest.raises(NoKernelError, match=r"none of .* serves layer norm fp32 60x40"):
        Dispatcher(dispatcher.libraries, selection="rms_norm_forward_bf16_4").plan(problem)


def _read(problem: NormProblem) -> NormProblem:
    """The problem that its C struct says."""
    struct = problem.native()
    return NormProblem.from_native(ctypes.addressof(struct))
