from __future__ import annotations

import csv
from pathlib import Path

import pytest
from selection.oracle import evaluation, same_run, shares

from kernelwright.tile_engine.registry import measurable


def test_a_share_is_of_the_fastest_kernel_with_its_best_slices() -> None:
    times = {("a", "split_k=1"): 2.0, ("a", "split_k=4"): 1.0, ("b", ""): 4.0}
    assert shares([("b", ""), ("a", "split_k=4")], times) == [0.25, 1.0]
    assert shares([("a", "split_k=1"), ("c", ""), ("b", "")], times) == [0.5, 0.25]
    assert shares([("b", "")], {("b", ""): 4.0}) is None  # nothing to choose
    with pytest.raises(ValueError, match="the choice c  was not measured"):
        shares([("c", "")], times)


def test_slices_without_a_time_count_with_the_slower_neighbour() -> None:
    times = {("a", "num_splits=2"): 4.0, ("a", "num_splits=8"): 1.0, ("a", "num_splits=16"): 2.0}
    assert shares([("a", "num_splits=4")], times) == [0.25]
    assert shares([("a", "num_splits=12")], times) == [0.5]
    assert shares([("a", "num_splits=32")], times) == [0.5]


def test_evaluations_count_the_best_of_the_first_three() -> None:
    summary = evaluation([[0.5, 1.0, 0.2, 0.1], [1.0], [0.8, 0.7, 0.6, 1.0]])
    assert summary == {
        "problems": 3, "mean": 0.7667, "median": 0.8, "p10": 0.5, "min": 0.5, "fastest": 1,
        "best of the first 3": 0.9333,
    }  # fmt: skip


def test_choices_of_the_run_itself_are_measured_against_its_fastest_kernel(tmp_path: Path) -> None:
    attention = measurable("attention")
    problem = attention.read({"seqlen_q": 1, "seqlen_k": 100, "nhead_q": 4, "hdim_q": 64, "page_size": 16})
    rows = [("0", "k", "ok", 1.0), ("0", "k", "ok", 2.0), ("0", "learned: k", "reference", 1.25), ("1", "k", "ok", 1.0)]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        columns = ["problem_idx", "kernel", "status", "latency_ms", "selected", "identity", "arch"]
        writer = csv.DictWriter(file, [*columns, *attention.columns])
        writer.writeheader()
        for number, kernel, status, ms in rows:
            writer.writerow(problem | {"problem_idx": number, "kernel": kernel, "status": status, "latency_ms": ms})
    summaries = same_run([tmp_path / "table.csv"], attention)
    assert summaries["decode"]["mean"] == summaries["all"]["min"] == 0.8 and summaries["all"]["problems"] == 1
