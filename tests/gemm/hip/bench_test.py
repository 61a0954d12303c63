"""The tile engine on ``hip:0``: shipped kernels' host side and launches, on a stand-in device that multiplies."""

from __future__ import annotations

import json
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from kernelwright.dispatch.core import device
from kernelwright.dispatch.testdata import mocks
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.results.csv_file import read_rows

PROBLEMS = [{"m": 40, "n": 24, "k": 64, "layout": "rcr", "dtype": "fp16"},
            {"m": 16, "n": 136, "k": 32, "layout": "rcr", "dtype": "fp16"}]  # fmt: skip
FAST = ("--rounds", "2", "--repeat", "3", "--warmup", "1", "--warm-clocks", "0", "--duration", "0.001")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mocks.native_library()
    folder = tmp_path_factory.mktemp("library")
    with as_file(files("gemm") / "gfx942_gemm") as path:
        shutil.copytree(path, folder / "gemm")
    return folder / "gemm"


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("fake_device.c")
    command = [*mocks.compilers()[0], "-std=c11", "-O2", str(source)]
    return mocks.compile_shared(command, tmp_path_factory.mktemp("hip") / "libamdhip64.so.7")


@pytest.fixture
def on_device(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a run writes its table; the machine has one gfx942."""
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(runtime))
    monkeypatch.setattr(device, "hip_archs", lambda ordinal: ("gfx942",))
    (tmp_path / "problems.json").write_text(json.dumps(PROBLEMS))
    return tmp_path / "table.csv"


def bench(library: Path, table: Path, *options: str) -> int:
    problems = str(table.with_name("problems.json"))
    asked = ["bench", "--library", str(library), "--device", "hip:0", "--problems", problems, "--output", str(table)]
    only = ["--variant", "gemm", "--kernels", "*fp16_rcr_compv3_cshuffle_*_128x128x64_2x2x1_32x32x16"]
    return main([*asked, *only, *FAST, *options])


def test_kernels_are_verified_and_timed_by_events(library: Path, on_device: Path) -> None:
    assert bench(library, on_device) == 0
    rows = read_rows(on_device)
    assert rows and {row["status"] for row in rows} == {"ok"} and {row["problem_idx"] for row in rows} == {"0", "1"}
    for row in rows:
        assert (row["device"], row["arch"], float(row["error"])) == ("hip:0", "gfx942", 0)
        assert float(row["latency_ms"]) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("fault", "status", "code"), [("wrong", "wrong", 3), ("fail", "failed", 1), ("hang", "timeout", 1)]
)
def test_faults_are_rows_and_the_run_goes_on(
    library: Path, on_device: Path, fault: str, status: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_HIP_FAULT", fault)
    assert bench(library, on_device, "--kernel-timeout", "2") == code
    rows = read_rows(on_device)
    assert {row["status"] for row in rows} == {status} and {row["problem_idx"] for row in rows} == {"0", "1"}
