from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.tile_engine.results.analysis import Timed, best, changes, selection_efficiency, timed
from kernelwright.tile_engine.results.cover import UNSERVED, greedy_cover


def cells(kernel: str, problem: int, ms: str, status: str = "ok", selected: str = "") -> dict[str, str]:
    row = {"kernel": kernel, "identity": f"id-{kernel}", "problem_idx": str(problem), "latency_ms": ms}
    return {**row, "status": status, "selected": selected}


def test_choices_of_a_kernel_are_apart_and_its_best_counts_for_a_cover() -> None:
    rows = [{**cells("a", 0, ms), "choices": f"split_k={slices}"} for slices, ms in ((1, "3"), (2, "1"), (4, "2"))]
    times = timed([*rows, cells("b", 0, "1.5")])
    assert [row.milliseconds for row in times] == [3.0, 1.0, 2.0, 1.5]
    assert best(times)[0].choices == "split_k=2" and len(changes(times, times)) == 4
    assert [(step.kernel, step.efficiency) for step in greedy_cover(times)] == [("a", 1.0)]


def one(kernel: str, problem: int, ms: float, selected: bool = False) -> Timed:
    return timed([cells(kernel, problem, str(ms), selected="1" if selected else "")])[0]


def test_rows_without_a_right_time_do_not_count_and_the_last_of_a_pair_does() -> None:
    rows = [cells("a", 0, "2"), cells("b", 0, "", "refused"), cells("c", 0, "1", "wrong"), cells("a", 0, "3")]
    assert [(row.kernel, row.milliseconds) for row in timed(rows)] == [("a", 3.0)]


def test_the_selector_is_compared_with_the_best_kernel() -> None:
    times = [one("a", 0, 1.0), one("b", 0, 2.0, True), one("a", 1, 4.0, True), one("b", 1, 5.0), one("a", 2, 1.0)]
    assert {problem: row.kernel for problem, row in best(times).items()} == {0: "a", 1: "a", 2: "a"}
    score = selection_efficiency(times)
    assert score is not None
    assert (score.problems, score.mean, score.median, score.p10, score.minimum) == (2, 0.75, 0.75, 0.5, 0.5)
    share, chosen, fastest = score.lowest[0]
    assert (share, chosen.kernel, fastest.kernel) == (0.5, "b", "a")
    assert selection_efficiency([one("a", 0, 1.0)]) is None


def test_the_best_of_the_first_of_a_ranking_counts_where_a_table_has_ranks() -> None:
    def ranked(kernel: str, problem: int, ms: str, rank: str) -> dict[str, str]:
        return {**cells(kernel, problem, ms, selected="1" if rank == "1" else ""), "rank": rank}

    rows = [ranked("a", 0, "4", "1"), ranked("b", 0, "2", "3"), ranked("c", 0, "1", "4"), ranked("a", 1, "1", "1")]
    score = selection_efficiency(timed(rows))
    assert score is not None and score.top == {1: 0.625, 3: 1.0, 5: 1.0}  # three kernels are before the fourth place
    assert str(score).endswith("min 0.2500; best of 3 1.0000, best of 5 1.0000")
    known = selection_efficiency(timed([*rows, cells("a", 2, "1", selected="1")]))
    assert known is not None and known.top == {} and known.as_json()["problems"] == 3


def test_changes_have_regressions_first() -> None:
    old = [one("a", 0, 1.0), one("b", 0, 2.0), one("c", 0, 1.0)]
    new = [one("a", 0, 0.5), one("b", 0, 3.0), one("d", 0, 1.0)]
    assert [(change.new.kernel, change.ratio) for change in changes(old, new)] == [("b", 1.5), ("a", 0.5)]


def test_a_cover_takes_the_kernel_that_gains_most_for_its_cost() -> None:
    times = [one("wide", 0, 1.0), one("wide", 1, 2.0), one("narrow", 1, 1.0), one("slow", 0, 4.0)]
    steps = greedy_cover(times)
    assert [step.kernel for step in steps] == ["wide", "narrow"]
    assert steps[0].efficiency == pytest.approx(math.sqrt(0.5)) and steps[0].worst == 0.5
    assert steps[1].efficiency == pytest.approx(1.0)
    assert (steps[1].worst, steps[1].cost) == (1.0, 2.0)
    dear = greedy_cover(times, {"id-wide": 100.0, "id-narrow": 1.0, "id-slow": 1.0}.__getitem__)
    assert [step.kernel for step in dear] == ["narrow", "slow", "wide"]


def test_a_kernel_brings_those_that_its_plans_need_and_pays_for_them_once() -> None:
    def split(kernel: str, problem: int, ms: float, stages: str = "") -> Timed:
        return timed([{**cells(kernel, problem, str(ms)), "stages": stages}])[0]

    cost = {"id-whole": 1.0, "id-split": 1.0, "id-other": 1.0, "combine": 10.0}
    times = [split("whole", 0, 4), split("split", 0, 1, "combine"), split("split", 1, 1, "combine")]
    times += [split("whole", 1, 1.5), split("other", 2, 1, "combine"), split("whole", 2, 2)]
    steps = greedy_cover(times, cost.__getitem__)
    assert [(step.kernel, step.companions, step.cost) for step in steps] == [
        ("whole", (), 1.0), ("split", ("combine",), 12.0), ("other", (), 13.0),
    ]  # fmt: skip
    assert not greedy_cover([split("whole", 0, 1)])[0].companions


@given(st.dictionaries(st.tuples(st.sampled_from("abcd"), st.integers(0, 4)), st.floats(0.1, 10.0), min_size=1))
def test_a_whole_cover_reaches_the_best_kernels(pairs: dict[tuple[str, int], float]) -> None:
    steps = greedy_cover([one(kernel, problem, ms) for (kernel, problem), ms in pairs.items()])
    assert steps[-1].efficiency == pytest.approx(1.0) and steps[-1].worst == pytest.approx(1.0)
    efficiencies = [step.efficiency for step in steps]
    assert efficiencies == sorted(efficiencies) and efficiencies[0] >= UNSERVED
