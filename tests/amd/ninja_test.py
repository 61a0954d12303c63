"""A Ninja file for AMD kernels: the headers that are rewritten to compile faster are made when it is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

from kernelwright.codegen.interface.cli import main

SPEC = {
    "op": "gemm", "dtype": "fp16", "layout": "rcr", "tile": [128, 128, 32], "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16], "pipeline": "compv3",
}  # fmt: skip


def test_rewritten_headers_are_mounted(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    trees, out = os.environ["KERNELWRIGHT_TREES"], tmp_path / "out"
    chosen = ["--arch", "gfx942", "--spec", str(tmp_path / "spec.json"), "--name", "g"]
    assert main(["build", "--ninja", *chosen, "--trees", trees, "--out", str(out)]) == 0
    assert list((out / "__ck_tile_lean/include").resolve().rglob("*.hpp"))
    assert "__trees/ck_tile_lean.digest" in (out / "build.ninja").read_text()
