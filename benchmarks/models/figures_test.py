from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.figures import ratios, tables

RESULTS = Path(__file__).resolve().parents[1] / "results" / "h200_models_20261128.json"


def row(mode: str, torch: float, ours: float, model: str = "M", work: str = "forward 1x8") -> dict[str, Any]:
    times = {"torch": {"median": torch}, "kernelwright": {"median": ours}}
    return {"model": model, "work": work, "mode": mode, "ms": times, "ratio": {"median": torch / ours}}


def test_a_graph_is_held_to_the_faster_of_torchs_calls() -> None:
    speedups = ratios([row("eager", 2.0, 4.0), row("graph", 3.0, 1.0), {"model": "M", "state": "unequal"}])
    assert speedups == {("M", "forward 1x8"): {"eager": 0.5, "graph": 2.0}}


def test_models_of_equal_works_share_a_table() -> None:
    rows = [row("eager", 1.0, 2.0), row("eager", 1.0, 1.0, "N"), row("graph", 1.0, 4.0, "O", "decode 1")]
    assert tables(rows) == (
        "| model | forward 1x8 |\n|---|---|\n| M | 0.50 |\n| N | 1.00 |\n\n"
        "| model | decode 1 |\n|---|---|\n| O | 0.25 |\n\n"
        "Geometric mean of 2 eager calls 0.707, worst 0.50.\n\nGeometric mean of 1 graph calls 0.250, worst 0.25."
    )


def test_the_page_has_the_tables_of_the_committed_results() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md").read_text()
    assert tables(json.loads(RESULTS.read_text())["results"]) in page
