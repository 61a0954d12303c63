"""The report on a library that is made of lines: its table, its JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.simulator.counting.observer_test import LOOP
from kernelwright.simulator.testing.objects import Kernel, assemble_text, make_object
from kernelwright.simulator.tools.quality import OK, WRONG, main

IDENTITY = "0123456789abcdef" * 4
RESOURCES = {
    **{"vgpr": 64, "sgpr": 32, "lds_bytes": 32768, "block_size": 256, "wave_size": 64, "vgpr_spills": 1},
    **{"sgpr_spills": 2, "workgroups_per_cu": 2, "occupancy_percent": 25},
}


def library(folder: Path, **fields: Any) -> Path:
    text = assemble_text("gfx942", [*LOOP, ("SOPP", "s_endpgm")])
    helper = assemble_text("gfx942", [("SOPP", "s_endpgm")])
    symbol = f"kw_kernel_{IDENTITY[:16]}"
    kernels = {f"{symbol}_sum": Kernel(helper), f"{symbol}_gemm": Kernel(text, lds=4096)}
    (folder / "libgemm.so").write_bytes(b"host code" + make_object("gfx942", kernels))
    manifest = {
        **{"name": "gemm", "arch": "gfx942", "backend": "ck_tile", "library": "libgemm.so"},
        "kernels": [{"name": "gemm_one", "identity": IDENTITY, "resources": RESOURCES}],
    }
    (folder / "manifest.json").write_text(json.dumps({**manifest, **fields}))
    return folder


@pytest.mark.parametrize("path", ["", "manifest.json", "libgemm.so"])
def test_the_main_loop_is_reported(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(library(tmp_path) / path), "--json"]) == OK
    (found,) = json.loads(capsys.readouterr().out)["libraries"]
    (row,) = found["kernels"]
    assert (found["name"], found["arch"], row["name"]) == ("gemm", "gfx942", "gemm_one")
    assert row["symbol"].endswith("_gemm") and row["clocks"] == {"matrix": 16, "vector": 4, "lds": 64}
    assert (row["bound"], row["limiter"], row["spills"]) == ("lds", "lds", 3)
    assert row["loop"]["lds"] == {"read 16": 1, "write 16": 1} and row["outside"]["instructions"] == 5


def test_the_table_has_a_line_for_each_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(library(tmp_path))]) == OK
    title, heading, line = capsys.readouterr().out.splitlines()
    assert title.startswith("gemm for gfx942: 1 kernels") and heading.split()[:4] == [
        "bound",
        "matrix",
        "vector",
        "LDS",
    ]
    assert line.split()[:4] == ["lds", "16", "4", "64"] and line.endswith("gemm_one")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"backend": "cpu"}, "is no manifest of AMD kernels"),
        ({"kernels": [{"name": "other", "identity": "f" * 64, "resources": RESOURCES}]}, "has no code of kernel other"),
    ],
)
def test_other_libraries_are_refused(
    fields: dict[str, Any], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(library(tmp_path, **fields))]) == WRONG
    assert why in capsys.readouterr().err


def test_a_folder_without_libraries_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == WRONG
    assert "holds no manifest.json" in capsys.readouterr().err
