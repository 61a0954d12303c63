"""The tile engine on a GPU: every kernel of the test library is checked and timed by events, in child processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

click = pytest.importorskip("click", reason="the command line needs click")

from places import DEVICE  # noqa: E402

from kernelwright.tile_engine.interface.cli import main  # noqa: E402
from kernelwright.tile_engine.results.csv_file import read_rows  # noqa: E402

LIBRARY = Path(os.environ["KERNELWRIGHT_GPU_LIBRARY"]).parent


def test_right_kernels_have_times_and_refused_ones_reasons(tmp_path: Path) -> None:
    problems = tmp_path / "problems.json"
    shapes = [(512, 512, 512), (7, 1280, 5120)]
    problems.write_text(json.dumps([{"m": m, "n": n, "k": k, "dtype": "bf16"} for m, n, k in shapes]))
    table = tmp_path / "t.csv"
    options = ["--rounds", "3", "--duration", "0.01", "--rotating-buffers", "4", "--kernel-timeout", "60"]
    library = ["--library", str(LIBRARY), "--device", DEVICE, "--kernels", "gemm_bf16_rcr_*"]
    assert main(["bench", *library, "--problems", str(problems), "--output", str(table), *options]) == 0
    rows = read_rows(table)
    right = [row for row in rows if row["status"] == "ok"]
    assert {row["problem_idx"] for row in right} == {"0", "1"}
    assert {row["status"] for row in rows} <= {"ok", "refused"}
    for row in right:
        assert 1e-3 < float(row["latency_ms"]) < 5
        assert float(row["error"]) <= 1 and 0 < float(row["roofline"]) < 1
