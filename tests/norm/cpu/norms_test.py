"""Norms and their gradients on processors against float64: any rows, columns and strides, nothing else is written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import Dispatcher
from kernelwright.dispatch.operations.norm import NormProblem
from norm import reference
from norm.reference import BOUNDS, DTYPES, drawn, guarded, off

KINDS = ("rms", "layer")
EPSILON = 1e-5


@pytest.mark.parametrize("columns", [1, 7, 8, 16, 31, 33, 64, 100, 129, 1000, 4096])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_norm_is_that_of_the_definition(dispatcher: Dispatcher, kind: str, dtype: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = drawn(rng, (5, columns), dtype, offset=1.0)
    weight, bias = drawn(rng, (columns,), dtype), drawn(rng, (columns,), dtype)
    out = np.full_like(x, np.nan)
    if kind == "rms":
        returned = dispatcher.rms_norm(x, weight, out, epsilon=EPSILON)
        exact = reference.forward(x, kind, EPSILON, weight, None)
    else:
        returned = dispatcher.layer_norm(x, weight, bias, out, epsilon=EPSILON)
        exact = reference.forward(x, kind, EPSILON, weight, bias)
    assert returned is out and off(out, exact) < BOUNDS[dtype]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_rows_columns_strides_and_operands(dispatcher: Dispatcher, data: st.DataObject) -> None:
    kind, dtype = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(list(DTYPES)))
    rows, columns = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 300))
    has_weight, has_bias, has_residual, in_place, wide = (data.draw(st.booleans()) for _ in range(5))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, r, y, s = (
        guarded(values, data.draw(st.integers(0, 9)))
        for values in (*(drawn(rng, (rows, columns), dtype) for _ in range(2)),)
        + (np.full((rows, columns), np.nan, DTYPES[dtype]),) * 2
    )
    old_x, old_r = x.array.copy(), r.array.copy()
    weights = "fp32" if wide else dtype
    weight = drawn(rng, (columns,), weights) if has_weight else None
    bias = drawn(rng, (columns,), weights) if has_bias and kind == "layer" else None
    total = r.array if in_place else s.array
    options: dict[str, Any] = {"residual": r.array, "sum": total} if has_residual else {}
    if kind == "rms":
        dispatcher.rms_norm(x.array, weight, y.array, epsilon=EPSILON, **options)
    else:
        dispatcher.layer_norm(x.array, weight, bias, y.array, epsilon=EPSILON, **options)
    normalised = old_x
    if has_residual:
        normalised = (old_x.astype(np.float32) + old_r.astype(np.float32)).astype(DTYPES[dtype])
        assert np.array_equal(total, normalised)
    exact, terms = (
        one(normalised, kind, EPSILON, weight, bias) for one in (reference.forward, reference.forward_terms)
    )
    assert off(y.array, exact, terms) < 3 * BOUNDS[dtype]
    assert np.array_equal(x.array, old_x) and all(one.untouched() for one in (x, r, y, s))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("quantised", "steps"), [("int8", 127), ("fp8", 448)])
def test_quantised_results_have_a_scale_for_each_row(
    dispatcher: Dispatcher, quantised: str, steps: int, kind: str, dtype: str
) -> None:
    rng = np.random.default_rng(3)
    x, weight = drawn(rng, (9, 131), dtype), drawn(rng, (131,), dtype)
    x[4] = 0
    out = np.full((9, 131), 99, np.int8 if quantised == "int8" else ml_dtypes.float8_e4m3fn)
    scales = np.full(9, np.nan, np.float32)
    run = dispatcher.rms_norm if kind == "rms" else dispatcher.layer_norm
    returned = run(x, weight, out=out, scales=scales, dtype=quantised, epsilon=EPSILON)
    assert returned[0] is out and returned[1] is scales
    exact = reference.forward(x, kind, EPSILON, weight, None)
    largest = np.abs(exact).max(-1)
    np.testing.assert_allclose(scales, largest / steps, rtol=1e-5)
    assert (np.asarray(out)[4].astype(np.float32) == 0).all()
    restored = out.astype(np.float64) * scales[:, None].astype(np.float64)
    bound = 0.5001 * largest[:, None] / 127 if quantised == "int8" else np.abs(exact) / 15 + largest[:, None] / 400000
    assert (np.abs(restored - exact) <= bound).all()
    assert np.abs(out.astype(np.float32)).max() == steps


def test_a_row_that_is_not_finite_has_a_scale_that_is_none(dispatcher: Dispatcher) -> None:
    x = np.ones((3, 50), np.float32)
    x[1, 49] = np.inf
    _, scales = dispatcher.layer_norm(x, dtype="int8")
    assert np.isnan(scales).tolist() == [False, True, False]


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_gradients_are_those_of_the_definition(dispatcher: Dispatcher, data: st.DataObject) -> None:
    kind, dtype = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(list(DTYPES)))
    rows, columns = data.draw(st.integers(0, 70)), data.draw(st.integers(2, 300))
    has_weight, has_bias, has_dsum, in_place = (data.draw(st.booleans()) for _ in range(4))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, dy, dsum, dx = (guarded(drawn(rng, (rows, columns), dtype), data.draw(st.integers(0, 1)) * 3) for _ in range(4))
    dx.array[...] = np.nan
    weight = drawn(rng, (columns,), dtype) if has_weight else None
    added = dsum.array if has_dsum else None
    exact, terms = (
        one(x.array, dy.array, kind, EPSILON, weight, added) for one in (reference.backward, reference.backward_terms)
    )
    out = dy.array if in_place and dy.array.strides == dx.array.strides else dx.array
    options: dict[str, Any] = {"dsum": added, "epsilon": EPSILON}
    if has_weight:
        options["dweight"] = np.full(columns, np.nan, DTYPES[dtype])
    if kind == "layer" and has_bias:
        options["dbias"] = np.full(columns, np.nan, DTYPES[dtype])
    (dispatcher.rms_norm_backward if kind == "rms" else dispatcher.layer_norm_backward)(
        dy.array, x.array, weight, out, **options
    )
    for gradient, wanted, sums in zip((out, options.get("dweight"), options.get("dbias")), exact, terms, strict=True):
        assert gradient is None or off(gradient, wanted, sums) < 6 * BOUNDS[dtype]
    assert all(one.untouched() for one in (x, dy, dsum, dx))


def test_threads_change_no_bit(dispatcher: Dispatcher) -> None:
    rng = np.random.default_rng(0)
    x, dy = drawn(rng, (700, 513), "fp32"), drawn(rng, (700, 513), "fp32")
    weight = drawn(rng, (513,), "fp32")
    runs = []
    for threads in (1, 3, 8):
        dispatcher.set_num_threads(threads)
        problem = NormProblem("layer", 700, 513, backward=True)
        plan = dispatcher.plan(problem)
        dx, dweight = np.empty_like(x), np.empty_like(weight)
        plan(x, dy=dy, weight=weight, out=dx, dweight=dweight)
        runs.append((dispatcher.layer_norm(x, weight), dx, dweight))
    for other in runs[1:]:
        assert all(np.array_equal(one, another) for one, another in zip(runs[0], other, strict=True))


def test_every_unrolling_computes_the_same_norms(dispatcher: Dispatcher) -> None:
    x = drawn(np.random.default_rng(1), (6, 777), "bf16")
    kernels = [one.name for one in dispatcher.kernels if one.name.startswith("layer_norm_forward_bf16_")]
    plain = [name for name in kernels if name[-1].isdigit() and "int8" not in name and "fp8" not in name]
    assert len(plain) == 3
    exact = reference.forward(x, "layer", EPSILON, None, None)
    for name in plain:
        own = Dispatcher(dispatcher.libraries, selection=name)
        assert off(own.layer_norm(x, epsilon=EPSILON), exact) < BOUNDS["bf16"]
