"""Forward attention on CPUs against float64, by the 2x rule: random problems, features one by one, splits, threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attention.masks import BOTTOM_RIGHT, FULL, TOP_LEFT, Window
from attention.runtime.bench import check_forward, check_request, lse_of
from attention.runtime.cases import Case, operands, options, random_case, rows_of
from kernelwright.dispatch import ArrayError, Dispatcher

Typed = tuple[Dispatcher, str]
WINDOWS = (FULL, TOP_LEFT, BOTTOM_RIGHT, Window(20, 5), Window(3, -1, True), Window(0, 0))
FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"bias": "elementwise"},
    "alibi": {"bias": "alibi"},
    "cap": {"soft_cap": 2.0},
    "sinks": {"sinks": True},
    "dropout": {"dropout": 0.3},
    "everything": {"bias": "elementwise", "sinks": True, "dropout": 0.2},
}


def fits(case: Case) -> bool:
    """The library for tests has no fp16 kernels with ALiBi or, beside pages, with soft caps."""
    return case.dtype != "fp16" or (case.bias != "alibi" and not case.soft_cap)


@pytest.mark.thorough(keep=6, each="typed")
@pytest.mark.parametrize("seed", range(24))
def test_random_problems(typed: Typed, seed: int) -> None:
    dispatcher, dtype = typed
    case = random_case(seed, dtype, most=200)
    if fits(case):
        check_forward(dispatcher, case)


@pytest.mark.thorough(keep=1, each="typed")
@pytest.mark.parametrize("name", FEATURES)
def test_features_and_masks(typed: Typed, name: str) -> None:
    dispatcher, dtype = typed
    shapes: tuple[tuple[Any, ...], ...] = (
        ((150, 150), (200, 200), 4, 2, 64, 64),
        ((1,), (500,), 8, 1, 128, 128),  # one query of all heads: few rows
        ((3,), (333,), 8, 2, 40, 24),
        ((2,), (300,), 16, 1, 64, 64),  # heads share a block of rows
        ((97,), (513,), 1, 1, 256, 33),
        ((5, 1, 130), (17, 300, 200), 6, 3, 96, 96),
    )
    for window in WINDOWS:
        for queries, keys, *rest in shapes:
            case = Case(queries, keys, *rest, dtype=dtype, window=window, group=len(queries) > 2, **FEATURES[name])
            if fits(case):
                check_forward(dispatcher, case)


@pytest.mark.parametrize("splits", [2, 5, 16])
def test_splits(typed: Typed, splits: int) -> None:
    dispatcher, dtype = typed
    plain = Case((7, 7), (500, 333), dtype=dtype, splits=splits, seed=splits)
    few = Case((1, 1), (1000, 70), 8, 1, 128, 128, dtype, splits=splits)
    for case in (plain, replace(plain, sinks=True), replace(plain, window=Window(60, 2, True)), few):
        check_forward(dispatcher, case)


def test_rows_that_see_nothing_are_zero_and_have_no_sum(typed: Typed) -> None:
    dispatcher, dtype = typed
    check_forward(dispatcher, Case((9,), (3,), dtype=dtype, window=BOTTOM_RIGHT))  # the first six queries
    check_forward(dispatcher, Case((140,), (10,), dtype=dtype, window=BOTTOM_RIGHT))
    check_forward(dispatcher, Case((4, 5), (0, 3), dtype=dtype, group=True))
    check_forward(dispatcher, Case((0, 0), (5, 5), dtype=dtype))


def test_threads_change_no_bit(typed: Typed) -> None:
    dispatcher, dtype = typed
    for case in (
        Case((200, 200), (300, 300), dtype=dtype, window=TOP_LEFT, dropout=0.0 if dtype == "fp16" else 0.1),
        Case((1, 1), (900, 900), 8, 2, 64, 64, dtype, splits=4),
    ):
        made, distinct = operands(case), set()
        for threads in (1, 2, 5):
            dispatcher.set_num_threads(threads)
            fresh = Dispatcher(dispatcher.libraries)  # its plans are for so many threads
            out, lse = fresh.attention(made.q, made.k, made.v, lse=True, num_splits=case.splits, **options(made))
            distinct.add(out.tobytes() + lse.tobytes())
        dispatcher.set_num_threads(0)
        assert len(distinct) == 1


def test_long_rows_meet_several_blocks_of_keys(typed: Typed) -> None:
    """Large scores late in a row scale down what was summed before; small ones leave it alone."""
    dispatcher, dtype = typed
    case = Case((33,), (1000,), 2, 1, 64, 64, dtype)
    made = operands(case)
    made.k[0, 700:720] *= 8
    out, lse = dispatcher.attention(made.q, made.k, made.v, lse=True)
    scores = np.einsum("qhd,khd->hqk", made.q[0].astype(np.float64), np.repeat(made.k[0], 2, 1).astype(np.float64)) / 8
    p = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), np.repeat(made.v[0], 2, 1).astype(np.float64))
    np.testing.assert_allclose(out[0].astype(np.float64), wanted, atol={"fp32": 5e-5, "fp16": 4e-3}.get(dtype, 4e-2))
    np.testing.assert_allclose(lse[0], np.log(p.sum(-1)) + scores.max(-1), rtol=1e-6 if dtype == "fp32" else 1e-3)


def test_lengths_that_reach_beyond_the_rows_are_refused(dispatcher: Dispatcher) -> None:
    q, k = np.zeros((7, 1, 16), np.float32), np.zeros((9, 1, 16), np.float32)
    given = {"max_seqlen_q": 7, "max_seqlen_k": 9}

    def call(rows: list[int], keys: list[int], **more: Any) -> None:
        starts = {"cu_seqlens_q": np.array(rows, np.int32), "cu_seqlens_k": np.array(keys, np.int32)}
        dispatcher.attention(q, k, k, **starts, **given, **more)

    call([0, 3, 7], [0, 4, 9])
    for rows, keys, message in (
        ([0, 3, 8], [0, 4, 9], r"cu_seqlens_q goes from 0 to 8; allowed: from 0 to 7"),
        ([-1, 3, 7], [0, 4, 9], r"cu_seqlens_q goes from -1 to 7"),
        ([0, 3, 7], [2, 4, 10], r"cu_seqlens_k goes from 2 to 10; allowed: from 0 to 9"),
        ([0, 5, 3], [0, 4, 9], r"request 1 has -2 queries"),
    ):
        with pytest.raises(ArrayError, match=message):
            call(rows, keys)
    with pytest.raises(ArrayError, match=r"request 0 has 5 keys; allowed: up to 4, which K holds"):
        call([0, 3, 7], [0, 4, 9], seqlens_k=np.array([5, 5], np.int32))


def test_requests_of_few_queries_are_left_out(typed: Typed) -> None:
    dispatcher, dtype = typed
    case = Case((5, 1, 3), (9, 7, 20), dtype=dtype, group=True)
    made = operands(case)
    out, lse = np.full(made.q.shape, 7, made.q.dtype), np.full((4, 9), 7, np.float32)
    dispatcher.attention(made.q, made.k, made.v, out, lse=lse, min_seqlen_q=2, **options(made))
    assert (out[5] == 7).all() and (lse[:, 5] == 7).all()
    for index in (0, 2):
        check_request(made, index, rows_of(case, out, index, "q"), lse_of(case, lse, index))
