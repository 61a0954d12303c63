"""``./pants bench`` as its users meet it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from e2e.workspace import Workspace

FAST = ("--", "--duration", "0.001", "--rounds", "1")
PROBLEMS = [{"m": 33, "n": 17, "k": 65, "layout": layout, "dtype": "fp32"} for layout in ("rrr", "ccr")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_kernels_of_a_library_are_measured_and_nothing_is_built_twice(workspace: Workspace) -> None:
    workspace.write("t/problems.json", json.dumps(PROBLEMS))
    asked = ("bench", "--problems=t/problems.json", "t:lib", *FAST)
    first = workspace.pants(*asked)
    assert first.exit_code == 0, first.stderr
    table = workspace.root / "dist/bench/t.lib.csv"
    measured = rows(table)
    assert len(measured) == 6 and {row["status"] for row in measured} == {"ok", "refused"}
    assert {row["problem_idx"] for row in measured if row["status"] == "ok"} == {"0", "1"}
    assert all(float(row["latency_ms"]) > 0 for row in measured if row["status"] == "ok")
    again = workspace.pants(*asked)
    assert again.exit_code == 2 and "add --append or --resume" in again.stderr
    assert not [description for description in again.ran if description.startswith(("Compile", "Link"))]
    assert workspace.pants(*asked, "--resume").exit_code == 0
    assert rows(table) == measured


def test_bad_input_ends_with_2(workspace: Workspace) -> None:
    for options, said in (
        (("--problems=t/none.json", "t:lib"), "'t/none.json' is neither a file nor a key"),
        (("t:lib",), "--bench-problems is missing"),
        (("--problems=gemm-tuning-fp32", "t:one"), "No kernel_library targets were named"),
    ):
        run = workspace.pants("bench", *options)
        assert run.exit_code == 2 and said in run.stderr, run.stderr
