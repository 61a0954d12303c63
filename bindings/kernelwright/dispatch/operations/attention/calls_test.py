"""attention() as a call: repeated, bound, with arrays of any library, and refused. Numbers: tests/attention/runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, AttentionProblem, Dispatcher, ProblemError
from kernelwright.dispatch.testdata import mocks

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def dispatcher() -> Dispatcher:
    mocks.native_library()
    return Dispatcher(mocks.attention_library())


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def qkv() -> tuple[Array, Array, Array]:
    return drawn(2, 3, 4, 8), drawn(2, 5, 2, 8), drawn(2, 5, 2, 16)


def by_numpy(q: Array, k: Array, v: Array) -> Array:
    k, v = (np.repeat(each, q.shape[2] // k.shape[2], axis=2) for each in (k, v))
    scores = np.exp(np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5)
    output: Array = np.einsum("bhqk,bkhd->bqhd", scores / scores.sum(-1, keepdims=True), v)
    return output


def test_repeated_calls_find_their_plan_by_metadata(dispatcher: Dispatcher, qkv: Any) -> None:
    first = dispatcher.attention(*qkv)
    known = len(dispatcher._attention.by_call)
    for scale in (1.0, 2.0, 3.0):
        operands = [scale * one for one in qkv]
        np.testing.assert_allclose(dispatcher.attention(*operands), by_numpy(*operands), atol=1e-5)
    assert len(dispatcher._attention.by_call) == known
    np.testing.assert_array_equal(first, dispatcher.attention(*qkv, own_workspace=True, num_splits=1))
    out = np.full_like(first, np.nan)
    q, k, v = qkv
    assert dispatcher.attention(q, k, v, out) is out and dispatcher.attention(q, k, v, out, window=None) is out
    np.testing.assert_array_equal(out, first)


def test_foreign_arrays_and_strides(dispatcher: Dispatcher, qkv: Any) -> None:
    wanted, out = by_numpy(*qkv), np.full((2, 3, 4, 16), np.nan, np.float32)
    q, k, v = map(mocks.Foreign, qkv)
    dispatcher.attention(q, k, v, mocks.Foreign(out))
    np.testing.assert_allclose(out, wanted, atol=1e-5)
    wide = np.zeros((4, 6, 4, 8), np.float32)
    wide[::2, ::2] = qkv[0]
    np.testing.assert_allclose(dispatcher.attention(wide[::2, ::2], *qkv[1:]), wanted, atol=1e-5)
    heads = [one.transpose(0, 2, 1, 3) for one in qkv]  # the same memory, heads first
    actual = dispatcher.attention(*heads, layout="bhsd")
    assert actual.shape == (2, 4, 3, 16)
    np.testing.assert_allclose(actual.transpose(0, 2, 1, 3), wanted, atol=1e-5)


def test_plans_are_bound(dispatcher: Dispatcher, qkv: Any) -> None:
    plan = dispatcher.plan(AttentionProblem("forward", 2, 4, 2, 3, 5, 8, 16, dtype="fp32", dropout_p=0.5, num_splits=2))
    assert [stage.kernel.name for stage in plan.stages] == ["fmha_fwd_splitkv", "fmha_combine"]
    q, k, v = qkv
    first, second = (np.full((2, 3, 4, 16), np.nan, np.float32) for _ in range(2))
    bound = plan.bind(q=q, k=k, v=v, o=first, seed=5, offset=6)
    assert bound() is first
    assert plan(q=q, k=k, v=v, o=second, seed=5, offset=6) is second
    np.testing.assert_array_equal(first, second)
    plan(q=q, k=k, v=v, o=second, seed=6)
    assert not np.array_equal(first, second)
    addresses = {name: one.ctypes.data for name, one in (("q", q), ("k", k), ("v", v), ("o", second))}
    plan(**addresses, seed=5, offset=6)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ArrayError, match=r"operand 'out' is unknown; allowed: q, k, v, bias"):
        plan(q=q, k=k, v=v, out=first)
    with pytest.raises(ArrayError, match=r"seed is -1; allowed: an integer from 0"):
        plan(q=q, k=k, v=v, o=first, seed=-1)
    with pytest.raises(ArrayError, match=r"lse is given; the plan's problem says otherwise"):
        plan(q=q, k=k, v=v, o=first, lse=first)


def test_arrays_that_do_not_fit_are_refused(dispatcher: Dispatcher, qkv: Any) -> None:
    q, k, v = qkv
    starts = np.array([0, 3], np.int32)
    one = {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((q[0], k, v), {}, r"q has shape \(3, 4, 8\); allowed: 4 dimensions"),
        ((q, k, v[:, :4]), {}, r"v has shape \(2, 4, 2, 16\)"),
        ((q, k[..., ::2], v), {}, r"the last dimension must be contiguous"),
        ((q, k.astype(np.float16), v), {}, r"k is fp16 and v is fp32; they must be equal"),
        ((q[:, :, :3], k, v), {}, r"heads_q is 3; allowed: a multiple of heads_kv = 2"),
        ((q, k, v, np.zeros((2, 3, 4, 8), np.float32)), {}, r"o has shape \(2, 3, 4, 8\)"),
        ((q, k, v), {"lse": np.zeros((2, 3, 4), np.float32)}, r"lse has shape \(2, 3, 4\); allowed .*\(2, 4, 3\)"),
        ((q, k, v), {"bias": q[0, 0], "alibi_slopes": q[0, 0]}, r"both bias and alibi_slopes are given"),
        ((q, k, v), {"bias": np.zeros((2, 4, 3, 4), np.float32)}, r"bias has shape \(2, 4, 3, 4\)"),
        ((q, k, v), {"seqlens_k": np.array([5, 5])}, r"seqlens_k: dtype int64 is served by no kernel"),
        ((q, None, v), {}, r"k is missing; this call needs it"),
        ((q.astype(np.int32), k, v), {}, r"dtype is 'int32' \(did you mean 'int8'\?\); allowed: fp32, fp16"),
        ((q, k, v), {"mask": ["top_left"]}, r"mask is \['top_left'\]; allowed: none, top_left"),
        ((q, k, v), {"alibi_slopes": np.zeros(3, np.float32)}, r"alibi_slopes has shape \(3,\); allowed .*\(4,\)"),
        ((q, k, v), {"descale": 1.0}, r"descale is 1.0; allowed: three arrays"),
        ((q, k, v), {"cu_seqlens_k": starts}, r"cu_seqlens_k is given without cu_seqlens_q"),
        ((q, k, v), {"max_seqlen_q": 3}, r"max_seqlen_q is given without cu_seqlens_q"),
        (
            (q[0], k[0], v[0]),
            {**one, "cu_seqlens_q": starts[:0]},
            r"cu_seqlens_q has shape \(0,\); allowed: \(requests",
        ),
        ((q, k, v), {"seqlens_k": np.array([5], np.int32)}, r"seqlens_k has shape \(1,\); allowed .*\(2,\)"),
        ((q[0], k[0], v[0]), one, r"max_seqlen_k is not given"),
        ((q[0], k[0], v[0]), {**one, "max_seqlen_k": 5}, r"max_seqlen_q is not given"),
        ((q, k, v), {"layout": "sbhd"}, r"layout is 'sbhd' \(did you mean 'bshd'\?\); allowed: bshd, bhsd"),
        ((q, k, v), {"mask": "top_left", "window": 5}, r"window is 5; allowed: \(left, right\)"),
        ((q, k, v), {"mask": "top_left", "window": (1, 2, 3)}, r"window is \(1, 2, 3\); allowed: \(left, right\)"),
        (
            (q[0], k[0], v[0]),
            {
                **one,
                "cu_seqlens_k": np.array([0, 5], np.int32),
                "max_seqlen_q": 3,
                "max_seqlen_k": 5,
                "min_seqlen_q": 2,
            },
            r"out is missing; min_seqlen_q leaves rows of it as they are",
        ),
    ]
    for operands, options, message in cases:
        with pytest.raises((ArrayError, ProblemError), match=message):
            dispatcher.attention(*operands, **options)
    frozen = np.zeros((2, 3, 4, 16), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArrayError, match=r"o cannot be written to"):
        dispatcher.attention(q, k, v, frozen)
    square = drawn(2, 5, 2, 8)
    with pytest.raises(ArrayError, match=r"o shares memory with v"):
        dispatcher.attention(square.copy(), square.copy(), square, square)
    with pytest.raises(ArrayError, match=r"o shares memory with q"):  # also where the plan is known
        dispatcher.attention(square, square.copy(), square.copy(), np.zeros_like(square))
        dispatcher.attention(square, square.copy(), square.copy(), square)


def test_gradients_need_what_forward_made(dispatcher: Dispatcher, qkv: Any) -> None:
    q, k, v = qkv
    out, lse = dispatcher.attention(q, k, v, lse=True)
    with pytest.raises(ArrayError, match=r"do has shape \(2, 3, 4, 8\); allowed: \(2, 3, 4, 16\)"):
        dispatcher.attention_backward(q, k, v, out, out[..., :8], lse)
    with pytest.raises(ArrayError, match=r"lse has shape \(4, 3\)"):
        dispatcher.attention_backward(q, k, v, out, out, lse[0])
    for missing, given in (("lse", (out, out, None)), ("out", (None, out, lse)), ("dout", (out, None, lse))):
        with pytest.raises(ArrayError, match=f"{missing} is missing; this call needs it"):
            dispatcher.attention_backward(q, k, v, *given)


def test_tables_are_whole(dispatcher: Dispatcher) -> None:
    cache, q, table = drawn(4, 8, 2, 8), drawn(2, 1, 4, 8), np.zeros((2, 2), np.int32)
    lengths, listed = np.array([5, 9], np.int32), {"page_indptr": np.array([0, 1, 3], np.int32), "max_seqlen_k": 16}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, r"seqlens_k is missing; a block table needs"),
        (
            {"seqlens_k": lengths, "last_page_lengths": lengths},
            r"last_page_lengths is given without the rest of a list",
        ),
        ({**listed}, r"last_page_lengths is missing beside the rest of a list"),
        (
            {**listed, "last_page_lengths": lengths, "seqlens_k": lengths},
            r"seqlens_k is given beside last_page_lengths",
        ),
    ]
    for options, message in cases:
        with pytest.raises(ArrayError, match=message):
            dispatcher.decode(q, cache, cache, page_table=table, **options)
    with pytest.raises(ArrayError, match=r"page_table is missing; without it call attention"):
        dispatcher.prefill(q[:, 0], cache, cache, lengths, 1, lengths, page_table=None)
