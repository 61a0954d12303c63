from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from simulator.figures import END, START, section, written

ROOT = Path(__file__).resolve().parents[2]
CLOCKS = {"matrix_clocks": 512, "vector_clocks": 156, "lds_clocks": 384}
LOOP = {**CLOCKS, "vector": 39, "registers": 152, "bound": "matrix"}


def report(before: dict[str, Any] | None) -> dict[str, Any]:
    return {"results": [{"arch": "gfx942", "name": "one", "before": before, "after": LOOP}]}


def test_the_page_shows_the_results_that_are_checked_in() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "amd_counts.json").read_text())
    page = (ROOT / "docs" / "counts.md").read_text()
    assert written(page, results) == page
    assert {row["arch"] for row in results["results"]} == {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}


def test_a_number_that_changed_is_shown_twice() -> None:
    old = {**LOOP, "vector": 102, "vector_clocks": 408}
    assert "| `one` | 512 | 102 → 39 | 408 → 156 | 384 | 152 | matrix |" in section(report(old))
    assert "| `one` | 512 | 39 | 156 | 384 | 152 | matrix |" in section(report(None))


def test_a_page_is_filled_and_filled_again() -> None:
    page = written(f"# Page\n\n{START}\n{END}\n\nEnd\n", report(None))
    assert page.startswith("# Page\n") and page.endswith("\n\nEnd\n") and "**gfx942**" in page
    assert written(page, report(None)) == page
    with pytest.raises(ValueError, match="no single pair"):
        written("# Page\n", report(None))
