"""Runs attention of a dispatcher on cases and holds every request to float64.

O may be off by twice what a plain implementation in the element type is off, which rounds probabilities and results
once (the 2× rule). Gradients may be off by four roundings of their largest element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention.reference import Backward, Features, backward, forward
from attention.runtime.cases import DTYPES, Case, Operands, operands, options, rows_of
from kernelwright.dispatch import Dispatcher

Array = np.ndarray[Any, np.dtype[Any]]
_FLOOR = {"fp32": 2e-6, "fp16": 1e-3, "bf16": 8e-3}  # of the largest element: a plain result may be right by chance


def check_forward(dispatcher: Dispatcher, case: Case) -> None:
    """O and LSE of every request; outputs are poisoned before."""
    made = operands(case)
    sizes = (*made.q.shape[:-1], case.hdim_v)
    out = np.full(sizes, np.nan, DTYPES[case.dtype])
    rows = (case.heads, sum(case.queries)) if case.group else (len(case.queries), case.heads, case.queries[0])
    lse = np.full(rows, np.nan, np.float32)
    dispatcher.attention(
        made.q, made.k, made.v, out, lse=lse, sinks=made.sinks, num_splits=case.splits, **options(made)
    )
    for index in range(len(case.queries)):
        check_request(made, index, rows_of(case, out, index, "q"), lse_of(case, lse, index))


def lse_of(case: Case, lse: Array, index: int) -> Array:
    """Heads x queries of one request."""
    if not case.group:
        return lse[index]
    first = sum(case.queries[:index])
    return lse[:, first : first + case.queries[index]]


def check_request(made: Operands, index: int, out: Array, lse: Array) -> None:
    """One request's O (heads x queries x hdim_v) and LSE."""
    q, k, v = (made.request(name, index) for name in "qkv")
    features = made.features(index)
    wanted = forward(q, k, v, features)
    check(out, wanted.o, _plain(q, k, v, features), made.case.dtype)
    finite = np.isfinite(wanted.lse)
    np.testing.assert_array_equal(lse[~finite], wanted.lse[~finite])
    tolerance = {"fp32": 1e-5, "fp16": 2e-3, "bf16": 1.6e-2}[made.case.dtype]
    np.testing.assert_allclose(lse[finite], wanted.lse[finite], atol=tolerance, rtol=tolerance)


def check_backward(dispatcher: Dispatcher, case: Case, deterministic: bool = False) -> None:
    """dQ, dK, dV, and dbias where there is an elementwise bias; O and LSE come from the reference."""
    made = operands(case)
    for name in ("k", "v"):  # gradients of rows that do not count are no results
        np.nan_to_num(getattr(made, name), copy=False)
    out, lse = _forward_results(made)
    given = options(made)
    grad = {name: np.full(getattr(made, name[1]).shape, np.nan, made.q.dtype) for name in ("dq", "dk", "dv")}
    want_bias = made.bias is not None
    bias = {"dbias": _dbias_array(made)} if want_bias else {}
    returned = dispatcher.attention_backward(
        made.q, made.k, made.v, out, made.do, lse, deterministic=deterministic, **grad, **bias, **given
    )
    assert [id(each) for each in returned] == [id(each) for each in (*grad.values(), *bias.values())]
    for index in range(len(case.queries)):
        wanted = backward(*(made.request(name, index) for name in ("q", "k", "v", "do")), made.features(index))
        _check_gradients(made, index, grad, bias.get("dbias"), wanted)


def _check_gradients(made: Operands, index: int, grad: dict[str, Array], dbias: Array | None, wanted: Backward) -> None:
    case = made.case
    rounded = {"fp32": 2e-5, "fp16": 4e-3, "bf16": 3e-2}[case.dtype]
    for name, array in grad.items():
        exact = getattr(wanted, name)
        actual = rows_of(case, array, index, "q" if name == "dq" else "k").astype(np.float64)
        top = max(1.0, np.abs(exact).max(initial=0.0))
        np.testing.assert_allclose(actual, exact, atol=rounded * top, rtol=0, err_msg=name)
    if dbias is not None:
        queries, keys, first = case.queries[index], case.keys[index], sum(case.queries[:index])
        own = dbias[:, first : first + queries] if case.group else dbias[index]
        actual = own[:, :queries, :keys].astype(np.float64)
        assert not own[:, :queries, keys:].any(), "keys that do not count have gradients of 0"
        top = max(1.0, np.abs(wanted.dbias).max(initial=0.0))
        np.testing.assert_allclose(actual, wanted.dbias, atol=rounded * top, rtol=0, err_msg="dbias")


def _dbias_array(made: Operands) -> Array:
    case = made.case
    shape = (case.heads, sum(case.queries)) if case.group else (len(case.queries), case.heads, case.queries[0])
    return np.full((*shape, max(case.keys)), np.nan, made.q.dtype)


def _forward_results(made: Operands) -> tuple[Array, Array]:
    case = made.case
    out = np.zeros((*made.q.shape[:-1], case.hdim_v), made.q.dtype)
    rows = (case.heads, sum(case.queries)) if case.group else (len(case.queries), case.heads, case.queries[0])
    lse = np.zeros(rows, np.float32)
    for index in range(len(case.queries)):
        done = forward(*(made.request(name, index) for name in "qkv"), made.features(index))
        rows_of(case, out, index, "q")[:] = done.o
        lse_of(case, lse, index)[:] = done.lse
    return out, lse


def _plain(q: Array, k: Array, v: Array, features: Features) -> Array:
    """O with probabilities and results rounded to the element type."""
    done = forward(q, k, v, features)
    p = done.p if features.kept is None else np.where(features.kept, done.p / features.keep, 0.0)
    rounded: Array = p.astype(q.dtype).astype(np.float64)
    out: Array = (rounded @ np.repeat(v.astype(np.float64), q.shape[0] // v.shape[0], axis=0)).astype(q.dtype)
    return out


def check(actual: Array, wanted: Array, plain: Array, dtype: str) -> None:
    """The 2× rule, with a floor."""
    top = np.abs(wanted).max(initial=0.0)
    allowed = 2 * np.abs(plain.astype(np.float64) - wanted).max(initial=0.0) + _FLOOR[dtype] * top
    error = np.abs(actual.astype(np.float64) - wanted)
    assert not np.isnan(error).any(), "a result is NaN"
    assert error.max(initial=0.0) <= allowed, f"off by {error.max()}, allowed {allowed}"
