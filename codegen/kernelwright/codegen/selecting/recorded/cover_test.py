from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.codegen.selecting.recorded.cover import Budget, Option, Times, choose, fastest

SECONDS = dict.fromkeys("abcdef", 1.0)


def total(times: Times, counts: list[int], chosen: list[str]) -> float:
    taken = fastest(times, chosen, len(counts))
    return sum(counts[index] * times[option][index] for index, option in taken.items())


def test_every_problem_is_served_before_any_is_sped_up() -> None:
    times: Times = {("a",): {0: 100.0}, ("b",): {0: 1.0}, ("c",): {1: 5.0}}
    assert set(choose(times, [1, 1], SECONDS, Budget(kernels=2))) == {"b", "c"}


def test_a_kernel_that_others_outdo_is_left_out() -> None:
    times: Times = {("a",): {0: 2.0, 1: 2.0}, ("b",): {0: 1.0}, ("c",): {1: 1.0}}
    assert set(choose(times, [10, 10], SECONDS, Budget())) == {"b", "c"}
    assert choose(times, [10, 10], SECONDS, Budget(kernels=1)) == ["a"]


def test_a_gain_that_is_too_small_is_not_worth_a_kernel() -> None:
    assert choose({("a",): {0: 1000.0, 1: 1.0}, ("b",): {1: 0.9}}, [1, 1], SECONDS, Budget()) == ["a"]


def test_seconds_of_compiling_are_a_budget_and_a_price() -> None:
    times: Times = {("a",): {0: 1.0, 1: 1.0}, ("b",): {0: 1.01}, ("c",): {1: 1.01}}
    costs = {"a": 100.0, "b": 1.0, "c": 1.0}
    assert set(choose(times, [1, 1], costs, Budget(seconds=10))) == {"b", "c"}
    assert choose(times, [1, 1], costs, Budget(seconds=0.5)) == []


SomeTimes = st.dictionaries(
    st.sampled_from("abcdef").map(lambda kernel: (kernel,)),
    st.dictionaries(st.integers(0, 3), st.floats(1, 100), min_size=1),
    min_size=1,
)


@settings(deadline=None)  # other builds share the machine
@given(SomeTimes, st.lists(st.integers(1, 50), min_size=4, max_size=4), st.integers(1, 4))
def test_no_single_kernel_is_better_and_budgets_are_kept(
    times: dict[Option, dict[int, float]], counts: list[int], most: int
) -> None:
    served = sorted({index for of in times.values() for index in of})
    renumbered = {kernel: {served.index(index): us for index, us in of.items()} for kernel, of in times.items()}
    weights = counts[: len(served)]
    chosen = choose(renumbered, weights, SECONDS, Budget(kernels=most))
    assert 1 <= len(chosen) <= most and len(set(chosen)) == len(chosen)
    whole = [kernel for kernel in renumbered if len(renumbered[kernel]) == len(served)]
    if len(fastest(renumbered, chosen, len(served))) == len(served):
        for kernel in whole:
            assert total(renumbered, weights, chosen) <= total(renumbered, weights, list(kernel)) + 1e-9 or most == 1
    assert choose(renumbered, weights, SECONDS, Budget(kernels=most)) == chosen


def test_a_greedy_choice_is_near_the_best_one() -> None:
    times: Times = {
        (kernel,): {index: 1.0 + 3.0 * ((ord(kernel) * 7 + index * 5) % 11) for index in range(6)}
        for kernel in "abcdef"
    }
    counts = [1, 2, 3, 4, 5, 6]
    best = min(total(times, counts, list(pair)) for pair in itertools.combinations("abcdef", 2))
    assert total(times, counts, choose(times, counts, SECONDS, Budget(kernels=2))) <= 1.5 * best


def test_of_equal_kernels_the_first_is_taken() -> None:
    assert choose({("b",): {0: 1.0}, ("a",): {0: 1.0}}, [1], SECONDS, Budget()) == ["b"]


def test_kernels_that_serve_together_come_together() -> None:
    times: Times = {("part", "combine"): {0: 1.0}, ("whole",): {0: 3.0, 1: 3.0}, ("whole", "combine"): {1: 2.999}}
    assert choose(times, [1000, 1], {}, Budget(kernels=3)) == ["whole", "part", "combine"]
    assert choose(times, [1000, 1], {}, Budget(kernels=2)) == ["whole"]
    seconds = {"part": 5.0, "combine": 1.0, "whole": 1.0}
    assert choose(times, [1000, 1], seconds, Budget(seconds=6.5)) == ["whole"]
    alone: Times = {("part", "combine"): {0: 1.0}, ("part", "convert"): {1: 1.0}}
    assert choose(alone, [1, 1], {}, Budget()) == ["part", "combine", "convert"]


@pytest.mark.parametrize("budget", [Budget(), Budget(kernels=1)])
def test_nothing_to_choose(budget: Budget) -> None:
    assert choose({}, [], {}, budget) == []
