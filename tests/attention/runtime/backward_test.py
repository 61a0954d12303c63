"""attention_backward() on random problems against float64: three stages, with gradients of every operand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention.runtime.bench import check_backward
from attention.runtime.cases import Case, operands, options, random_case
from kernelwright.dispatch import Dispatcher


@pytest.mark.parametrize("seed", range(40))
def test_random_problems(naive: Dispatcher, seed: int) -> None:
    check_backward(naive, random_case(seed, most=30), deterministic=bool(seed % 2))


def test_results_are_allocated_and_sums_of_dq_are_converted(naive: Dispatcher) -> None:
    case = Case((5, 5), (70, 70), hdim=8, hdim_v=24)
    made = operands(case)
    out, lse = naive.attention(made.q, made.k, made.v, lse=True, **options(made))
    dq, dk, dv = naive.attention_backward(made.q, made.k, made.v, out, made.do, lse, deterministic=True)
    assert (dq.shape, dk.shape, dv.shape) == (made.q.shape, made.k.shape, made.v.shape)
    again = naive.attention_backward(made.q, made.k, made.v, out, made.do, lse, deterministic=True)
    for one, other in zip((dq, dk, dv), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_may_lie_side_by_side(naive: Dispatcher) -> None:
    """Q, K and V of one projection, whose gradients are views of one array too."""
    case = Case((6, 6), (6, 6), heads=3, kv_heads=3)
    made = operands(case)
    out, lse = naive.attention(made.q, made.k, made.v, lse=True)
    wanted = naive.attention_backward(made.q, made.k, made.v, out, made.do, lse)
    packed = np.full((2, 6, 3, 3, 16), np.nan, np.float32)
    views = [packed[:, :, each] for each in range(3)]
    naive.attention_backward(made.q, made.k, made.v, out, made.do, lse, dq=views[0], dk=views[1], dv=views[2])
    for view, want in zip(views, wanted, strict=True):
        np.testing.assert_array_equal(view, want)


def test_gradients_of_a_broadcast_bias_are_those_of_the_whole(naive: Dispatcher) -> None:
    check_backward(naive, replace(random_case(4), bias="elementwise", soft_cap=0.0, seed=2))  # seed 2: one head for all
