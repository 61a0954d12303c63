"""attention() on random problems against float64: what reaches the kernels, in batches and groups, split and whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention.masks import Window
from attention.runtime.bench import check_forward
from attention.runtime.cases import Case, random_case
from kernelwright.dispatch import Dispatcher


@pytest.mark.parametrize("seed", range(60))
def test_random_problems(naive: Dispatcher, seed: int) -> None:
    check_forward(naive, random_case(seed, most=30))


@pytest.mark.parametrize("splits", [1, 2, 5, 16])
def test_splits_give_the_same(naive: Dispatcher, splits: int) -> None:
    plain = Case((7, 7), (50, 33), splits=splits, seed=splits)
    for case in (plain, replace(plain, sinks=True), replace(plain, window=Window(6, 2, True))):
        check_forward(naive, case)


def test_rows_that_see_nothing_are_zero_and_have_no_sum(naive: Dispatcher) -> None:
    check_forward(naive, Case((9,), (3,), window=Window(right=0, bottom_right=True)))  # the first six queries
    check_forward(naive, Case((4, 5), (0, 3), group=True))
    check_forward(naive, Case((0, 0), (5, 5)))
