"""Kernels that misbehave, compiled here, measured by the real worker: each costs its own row and its limit of time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.dispatch.testdata import mocks
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.measuring import choosing
from kernelwright.tile_engine.measuring.isolation import CRASHED, TIMED_OUT, Child
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.results.csv_file import read_rows

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

RECORD = {"m": 64, "n": 64, "k": 64, "batch": 1, "layout": "rcr", "dtype": "fp32", "dtype_c": "fp32"}
MACROS = ("MOCK_MISBEHAVES", "_GNU_SOURCE")
LIMIT_S = 2.0
LONGEST_S = 60.0  # of three kernels, in at most two processes that start on a busy machine
DIED, KILLED = "signal SIGSEGV", "signal SIGKILL"
DEEDS = {
    "fork_and_die": (CRASHED, DIED),
    "fork_and_return": ("ok", ""),
    "daemon": ("ok", ""),
    "daemon_and_die": (CRASHED, DIED),
    "silent_daemon_and_hang": (TIMED_OUT, "no answer in 2 s"),
    "ignore_signals": (TIMED_OUT, "no answer in 2 s"),
    "flood_and_hang": (TIMED_OUT, "no answer in 2 s"),
    "flood_everything": (CRASHED, "is no report"),
    "close_pipes_and_hang": (TIMED_OUT, "no answer in 2 s"),
    "close_pipes_and_exit": (CRASHED, "exit code 0"),
    "stop": (TIMED_OUT, "no answer in 2 s"),
    "stop_parent": (TIMED_OUT, "no answer in 2 s"),
    "kill_parent": (CRASHED, KILLED),
    "kill_group": (CRASHED, KILLED),
    "exec": (TIMED_OUT, "no answer in 2 s"),
    "exit": (CRASHED, "exit code 0"),
    "first_thread_ends": (CRASHED, "exit code 0"),
    "run_away": (CRASHED, DIED),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mocks.native_library()
    return mocks.write_library(tmp_path_factory.mktemp("misbehaving"), *MACROS) / "manifest.json"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where each process that means to stay leaves its number; none of them may."""
    monkeypatch.setenv("MOCK_NOTES", str(tmp_path))
    yield tmp_path
    stayed = [note.name for note in tmp_path.iterdir() if is_alive(int(note.name))]
    for number in stayed:
        os.kill(int(number), 9)
    assert not stayed


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("deed", DEEDS)
def test_a_kernel_costs_its_own_row_whatever_it_does(
    library: Path, notes: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    monkeypatch.setenv("MOCK_DEED", deed)
    settings = Settings(warmup=0, repeat=1, warm_s=0.0, duration_s=0.001, rounds=1)
    child = Child(library, "cpu", "gemm", settings, LIMIT_S)
    kernels = [identity(digit) for digit in "102"]
    start = time.monotonic()
    by_kernel = {report["kernel"]: report for report in child.reports(RECORD, kernels)}
    assert time.monotonic() - start < LONGEST_S
    status, reason = DEEDS[deed]
    print(deed, by_kernel[kernels[0]], f"{time.monotonic() - start:.1f} s")
    assert [by_kernel[kernel]["status"] for kernel in kernels] == [status, "ok", "ok"]
    assert reason in by_kernel[kernels[0]]["reason"] and len(by_kernel[kernels[0]]["reason"]) < 3000


def identity(digit: str) -> str:
    named: dict[str, Any] = {name[1]: name for name in [mocks._identity("0", one) for one in mocks.KERNELS]}
    return str(named[digit])


def bench(library: Path, folder: Path) -> tuple[int, list[Any]]:
    problems, table = folder / "p.json", folder / "t.csv"
    problems.write_text(json.dumps([{"m": 64, "n": 64, "k": 64, "dtype": "fp32"}]))
    asked = ["bench", "--library", str(library.parent), "--problems", str(problems), "--output", str(table)]
    kernels = ["--kernels", "gemm_fp32_rcr_32x32x32", "--kernels", "gemm_fp32_rcr_128*"]
    code = main([*asked, *kernels, "--kernel-timeout", "6", "--duration", "0.001", "--rounds", "1"])
    return code, list(read_rows(table)) if table.exists() else []


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("deed", ["ignore_signals", "fork_and_die", "exit", "kill_parent"])
def test_a_library_that_misbehaves_when_it_is_loaded_ends_the_run_with_a_reason(
    library: Path, notes: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], deed: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("MOCK_LOADS", deed)
    monkeypatch.setattr(choosing, "PREPARING_S", 5.0)
    start = time.monotonic()
    assert bench(library, tmp_path_factory.mktemp("bench")) == (1, [])
    assert f"error: {library} cannot be loaded: " in capsys.readouterr().err and time.monotonic() - start < LONGEST_S


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize("deed", ["ignore_signals", "daemon_and_die", "exit"])
def test_a_plan_that_misbehaves_costs_its_own_row(
    library: Path, notes: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], deed: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("MOCK_PLANS", deed)
    code, rows = bench(library, tmp_path_factory.mktemp("bench"))
    status = {row["kernel"]: row["status"] for row in rows}
    assert code == 1 and status["gemm_fp32_rcr_32x32x32"] == (TIMED_OUT if deed == "ignore_signals" else CRASHED)
    assert not any(row["selected"] == "True" for row in rows), rows
    assert "warning: problem 0 has no plan: " in capsys.readouterr().err
