"""Predicted times stay as near to published ones as docs/benchmarks.md says."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from amd.convolutions import FITTED
from amd.convolutions import read as read_convolutions
from amd.convolutions import summary as conv_summary
from amd.evaluation import HELD_OUT_FOLD, Evaluated, bound, candidates, evaluate, fold, summary
from amd.published import Row, read

RESULTS = Path(__file__).resolve().parents[1] / "results"
CK_TILE = RESULTS / "amd_published_gemm_ck_tile.csv.gz"
AITER = RESULTS / "amd_published_gemm_aiter_0.1.7.csv.gz"


@functools.cache
def evaluated(path: Path, family: str, units: int) -> list[Evaluated]:
    rows = [row for row in read(path) if (row.family, row.units) == (family, units)]
    every = [row for row in read(path) if row.family == family]
    return evaluate(rows, candidates(every))


@pytest.mark.parametrize(
    ("path", "family", "units", "held_out", "rows", "mean", "first", "first_three"),
    [
        (CK_TILE, "ck_tile_fp8", 256, True, 39, 0.031, 0.82, 0.94),
        (AITER, "a8w8_blockscale", 304, True, 26, 0.108, 0.53, 0.84),
        (AITER, "a8w8_blockscale", 80, False, 117, 0.1, 0.28, 0.44),  # a device that no fit saw
        (AITER, "a8w8_rowwise", 80, False, 26, 0.109, 0.38, 0.65),
    ],
)
def test_held_out_problems_are_predicted_as_the_page_says(
    path: Path, family: str, units: int, held_out: bool, rows: int, mean: float, first: float, first_three: float
) -> None:
    stats = summary([one for one in evaluated(path, family, units) if not held_out or fold(one.row) == HELD_OUT_FOLD])
    assert stats["rows"] == rows
    assert stats["mean error"] <= mean, stats
    assert stats["first"] >= first and stats["first three"] >= first_three, stats


@pytest.mark.parametrize(
    ("path", "family", "units", "most"), [(CK_TILE, "ck_tile_fp8", 256, 0.03), (AITER, "a8w8_blockscale", 304, 0.01)]
)
def test_bounds_rank_hardly_any_fastest_kernel_first(path: Path, family: str, units: int, most: float) -> None:
    """So no set of architectures that have nothing but bounds is chosen by them."""
    rows = [row for row in read(path) if row.family == family]
    stats = summary(evaluate([row for row in rows if row.units == units], candidates(rows), bound))
    assert stats["first"] <= most and stats["predicted over published"] < 0.5, stats


def test_choices_among_convolution_kernels_are_as_the_page_says() -> None:
    held_out = conv_summary(read_convolutions()[FITTED:])
    assert held_out["problems"] == 20
    assert held_out["mean share of the fastest"] >= 0.955 and held_out["P10"] >= 0.86, held_out
    assert held_out["best of three"] >= 0.99 and held_out["mean error"] <= 0.164, held_out


def test_a_rank_counts_candidates_that_are_predicted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    row = read(CK_TILE)[0]
    taken: list[Any] = []

    class Alike:
        total_us = 2 * row.us

    def count(*given: Any) -> type[Alike]:
        taken.append(given)
        return Alike

    monkeypatch.setattr("amd.evaluation.estimate", count)
    (evaluated,) = evaluate([row], candidates([row]))
    assert evaluated.rank == len(taken) > 1 and evaluated.error == pytest.approx(1)


def test_folds_are_of_n_and_k_alone() -> None:
    rows = read(CK_TILE)
    parts = {(row.n, row.k): fold(row) for row in rows}
    assert all(parts[row.n, row.k] == fold(row) for row in rows)
    assert set(parts.values()) == {0, 1, 2, 3}


def test_a_summary_is_of_errors_and_ranks() -> None:
    row = read(CK_TILE)[0]
    stats = summary(
        [Evaluated(row, row.us * factor, rank) for factor, rank in ((1.1, 1), (0.7, 3), (1.0, 4), (1.0, 1))]
    )
    assert stats == {
        "rows": 4, "mean error": 0.1, "median error": 0.05, "P90 error": 0.3, "within 25 %": 0.75,
        "predicted over published": 1.0, "first": 0.5, "first three": 0.75,
    }  # fmt: skip
    assert isinstance(row, Row)
