"""The backward pass on CPUs against float64: random problems, features one by one, and results of many threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attention.masks import BOTTOM_RIGHT, FULL, TOP_LEFT, Window
from attention.runtime.bench import check_backward
from attention.runtime.cases import Case, operands, options, random_case
from kernelwright.dispatch import Dispatcher

Typed = tuple[Dispatcher, str]
FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"bias": "elementwise"},
    "alibi": {"bias": "alibi"},
    "cap": {"soft_cap": 2.0},
    "dropout": {"dropout": 0.3},
    "bias and dropout": {"bias": "elementwise", "dropout": 0.2},
}


@pytest.mark.thorough(keep=4, each="typed")
@pytest.mark.parametrize("seed", range(16))
def test_random_problems(typed: Typed, seed: int) -> None:
    dispatcher, dtype = typed
    case = random_case(seed, dtype, most=100)
    if dtype != "fp16" or case.bias != "alibi":
        check_backward(dispatcher, case, deterministic=bool(seed % 2))


@pytest.mark.thorough(keep=1, each="typed")
@pytest.mark.parametrize("name", FEATURES)
def test_features_and_masks(typed: Typed, name: str) -> None:
    dispatcher, dtype = typed
    if dtype == "fp16" and name == "alibi":
        pytest.skip("the library for tests has no such kernel")
    shapes: tuple[tuple[Any, ...], ...] = (
        ((150, 150), (200, 200), 4, 2, 64, 64),
        ((3,), (400,), 1, 1, 128, 128),
        ((2,), (333,), 4, 1, 40, 24),
        ((97,), (200,), 1, 1, 256, 256),
    )
    for window in (FULL, TOP_LEFT, BOTTOM_RIGHT, Window(20, 5)):
        for queries, keys, *rest in shapes:
            check_backward(dispatcher, Case(queries, keys, *rest, dtype=dtype, window=window, **FEATURES[name]))


def test_threads_and_tasks_change_no_bit(typed: Typed) -> None:
    """One task for all gradients of a head, or tasks of their own for dQ: sums have one order."""
    dispatcher, dtype = typed
    case = Case((140,), (300,), 3, 3, 64, 64, dtype, window=BOTTOM_RIGHT)
    for each in (case, replace(case, heads=4, kv_heads=1, dropout=0.1)):
        made, distinct = operands(each), set()
        out, lse = dispatcher.attention(made.q, made.k, made.v, lse=True, **options(made))
        for threads in (1, 2, 3, 5):
            dispatcher.set_num_threads(threads)
            fresh = Dispatcher(dispatcher.libraries)
            given = options(made)
            gradients = fresh.attention_backward(made.q, made.k, made.v, out, made.do, lse, **given)
            distinct.add(b"".join(each.tobytes() for each in gradients))
        dispatcher.set_num_threads(0)
        assert len(distinct) == 1
