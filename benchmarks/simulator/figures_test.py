from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from simulator.figures import CONFLICTS, COUNTS, Table, section, written

from kernelwright.codegen.selecting.selection import load_archs, select

ROOT = Path(__file__).resolve().parents[2]
CLOCKS = {"matrix_clocks": 512, "vector_clocks": 156, "lds_clocks": 384}
LOOP = {**CLOCKS, "vector": 39, "registers": 152, "bound": "matrix"}


def report(before: dict[str, Any] | None) -> dict[str, Any]:
    return {"results": [{"arch": "gfx942", "name": "one", "before": before, "after": LOOP}]}


@pytest.mark.parametrize(
    ("name", "table", "archs"),
    [
        ("amd_counts.json", COUNTS, {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}),
        ("amd_conflicts.json", CONFLICTS, {"gfx942", "gfx950"}),
    ],
)
def test_the_page_shows_the_results_that_are_checked_in(name: str, table: Table, archs: set[str]) -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / name).read_text())
    page = (ROOT / "docs" / "counts.md").read_text()
    assert written(page, results, table) == page
    assert {row["arch"] for row in results["results"]} >= archs


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_kernels_that_the_page_calls_essential_are(arch: str) -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "amd_conflicts.json").read_text())["results"]
    shown = {row["identity"] for row in results if row["shipped"] and row["arch"] == arch}
    sets = [select("set", f"{op}:essential", [arch], load_archs())[0] for op in ("gemm", "convolution")]
    essential = [{kernel.identity for kernel in selection.kernels} for selection in sets]
    assert all(shown & kernels for kernels in essential) and shown <= essential[0] | essential[1]


def test_conflicts_that_are_assumed_or_unknown_are_marked() -> None:
    clocks = {"matrix_clocks": 512, "vector_clocks": 220, "lds_clocks": 1280, "memory_clocks": None}
    row = {
        "arch": "gfx942",
        "name": "one",
        **clocks,
        "conflicts": 224,
        "bound": "lds",
        "assumed": False,
        "shipped": True,
    }
    for change, cell in (({}, "224"), ({"assumed": True}, "224 (assumed)"), ({"conflicts": None}, "–")):
        expected = f"| `one` | 512 | 220 | 1280 | – | {cell} | lds | yes |"
        assert expected in section({"results": [{**row, **change}]}, CONFLICTS)


def test_a_number_that_changed_is_shown_twice() -> None:
    old = {**LOOP, "vector": 102, "vector_clocks": 408}
    assert "| `one` | 512 | 102 → 39 | 408 → 156 | 384 | 152 | matrix |" in section(report(old), COUNTS)
    assert "| `one` | 512 | 39 | 156 | 384 | 152 | matrix |" in section(report(None), COUNTS)


def test_a_page_is_filled_and_filled_again() -> None:
    start, end = COUNTS.marks
    page = written(f"# Page\n\n{start}\n{end}\n\nEnd\n", report(None), COUNTS)
    assert page.startswith("# Page\n") and page.endswith("\n\nEnd\n") and "**gfx942**" in page
    assert written(page, report(None), COUNTS) == page
    with pytest.raises(ValueError, match="no single pair"):
        written("# Page\n", report(None), COUNTS)
