from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import Device, GemmProblem
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def quickstart() -> ModuleType:
    """The module however the tests are run: as part of its package, or from its file."""
    path = Path(__file__).with_name("quickstart.py")
    spec = importlib.util.spec_from_file_location("quickstart_under_test", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def row(quickstart: ModuleType, **changed: Any) -> Any:
    fields: dict[str, Any] = {
        "m": 1024, "n": 1024, "k": 1024, "dtype": "bf16", "layout": "rcr", "kernel": "gemm", "error": 0.5,
        "tiling": "14x32x2 in 168x4096x1024", "why": "fastest predicted of 2", "gflops": 1234.5, "numpy_gflops": 999.9,
    }  # fmt: skip
    return quickstart.Row(**{**fields, **changed})


def test_every_problem_is_one_line(quickstart: ModuleType) -> None:
    rows = [row(quickstart), row(quickstart, error=float("nan"))]
    wide = list(quickstart._table(rows, "title", 110, colours=False))
    assert len(wide) == 9 and all("fastest predicted of 2" in line for line in wide[3:5])
    assert "  14x32x2 in 168x4096x1024" in wide[3] and "nan WRONG" in wide[4]
    assert all(len(line) <= 100 for line in quickstart._table(rows[:1], "title", 100, colours=False))
    narrow = list(quickstart._table(rows, "title", 80, colours=False))
    assert all(len(line) <= 80 for line in narrow[:5]) and "fastest" not in "".join(narrow) and "--json" in narrow[-1]
    coloured = list(quickstart._table(rows, "title", 110, colours=True))
    assert "\x1b[32m" in coloured[3] and "\x1b[1;31m" in coloured[4] and "\x1b" not in coloured[2]


class Stream(io.TextIOWrapper):
    """Standard output of some encoding that may be a terminal."""

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined,no-any-return]


def test_output_suits_its_reader(quickstart: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def report(encoding: str, terminal: bool) -> str:
        stream = Stream(encoding, terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        quickstart._report([row(quickstart)], [], "library", Device("cpu"), as_json=False)
        return stream.text()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    assert "1024x1024x1024" not in report("utf-8", False) and "1024x1024x1024" in report("ascii", False)
    assert "fastest" in report("utf-8", False) and "fastest" not in report("utf-8", True)
    assert "\x1b[" in report("utf-8", True) and "\x1b[" not in report("utf-8", False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in report("utf-8", True)


def test_json_holds_no_nan(quickstart: ModuleType) -> None:
    report = json.loads(quickstart._json([row(quickstart, error=float("nan"))], [], "library", Device("cpu")))
    assert report["rows"][0]["error"] is None and report["rows"][0]["right"] is False


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_the_bound_accepts_the_right_result_and_nothing_else(quickstart: ModuleType, dtype: str) -> None:
    problem = GemmProblem(17, 9, 33, dtype=dtype)
    a, b, out = quickstart._operands(problem)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    rounded = exact.astype(out.dtype)
    assert quickstart._error(problem, a, b, rounded) <= 1
    step = 2 * quickstart.ROUNDOFF[dtype] * float(np.max(np.abs(exact)))
    wrong = rounded.copy()
    wrong[3, 4] = float(rounded[3, 4]) * 1.05 + step
    assert quickstart._error(problem, a, b, wrong) > 1
    wrong[3, 4] = float("nan")
    assert not row(quickstart, error=quickstart._error(problem, a, b, wrong)).right


def test_runs_against_a_library_and_reports(
    quickstart: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mocks.native_library()
    folder = mocks.write_library(tmp_path / "x86_64_v3")
    raw = json.loads((folder / "manifest.json").read_text())
    extent = {"m": 1, "n": 2, "k": 3}
    mocks.edit_manifest(folder, kernels=[{**k, "spec": {"tile": extent, "warp_tile": extent}} for k in raw["kernels"]])
    small = (GemmProblem(5, 6, 7, layout="rrr"), GemmProblem(0, 6, 7), GemmProblem(5, 6, 7, dtype="bf16"))
    monkeypatch.setattr(quickstart, "PROBLEMS", small)
    assert quickstart.main(["--library", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["right"] for row in report["rows"]] == [True, True]
    assert list(report) == ["device", "library", "simulated", "repeats", "rows", "unserved"]
    fields = "m n k dtype layout kernel tiling why error gflops numpy_gflops right"
    assert report["simulated"] is False
    assert list(report["rows"][0]) == fields.split() and report["rows"][0]["why"] == "only kernel that fits"
    for key in (*report, *report["rows"][0]):
        assert key in (quickstart.__doc__ or ""), f"{key} is documented"
    assert report["rows"][0]["kernel"] == "gemm_fp32_rrr_32x32x32" and "bf16" in report["unserved"][0]
    assert quickstart.main(["--library", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "1x2x3 in 1x2x3" in output.out and "left out" not in output.out and "left out, for" in output.err
    assert "none of 9 kernels serves gemm bf16" in output.err and "a warp tile (in registers)" in output.out
    monkeypatch.setattr(quickstart, "PROBLEMS", (GemmProblem(5, 6, 7, dtype="fp16", layout="rrr"),))
    assert quickstart.main(["--library", str(tmp_path)]) == 3  # this mock kernel writes nothing
    assert "WRONG" in capsys.readouterr().out
    monkeypatch.setattr(quickstart, "PROBLEMS", small[2:])
    assert quickstart.main(["--library", str(tmp_path)]) == 1
    assert quickstart.main(["--library", str(tmp_path / "nowhere")]) == 1
    assert quickstart.main(["--device", "hip:0"]) == 1
    assert "pass --library" in capsys.readouterr().err


def test_simulated_results_have_counts_and_no_speeds(
    quickstart: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a stand-in for the simulator: the mock kernel runs on this machine, its reports are made up."""

    class Fake(ModuleType):
        Buffer = staticmethod(lambda *values, **names: None)
        SimulatorError = ZeroDivisionError
        library_path = staticmethod(lambda: tmp_path / "runtime.so")
        run = staticmethod(lambda arch, buffers, launch: launch())
        last_reports = staticmethod(
            lambda: [SimpleNamespace(instructions=60, counts={"matrix": 7, "lds": 3, "wait": 50})] * 2
        )

    for module in ("kernelwright.simulator", "kernelwright.simulator.run.device"):
        monkeypatch.setitem(sys.modules, module, Fake(module))
    mocks.native_library()
    folder = mocks.write_library(tmp_path / "gfx942", "MOCK_ANY_DEVICE", arch="gfx942", backend="ck_tile")
    raw = json.loads((folder / "manifest.json").read_text())
    extent = {"m": 1, "n": 2, "k": 3}
    mocks.edit_manifest(folder, kernels=[{**k, "spec": {"tile": extent, "warp_tile": extent}} for k in raw["kernels"]])
    monkeypatch.setattr(quickstart, "SIMULATED_PROBLEMS", (GemmProblem(5, 6, 7, layout="rrr"),))
    command = ["--device", "sim:gfx942", "--library", str(tmp_path)]
    assert quickstart.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "simulated on sim:gfx942" in lines[0] and "Simulated, not measured" in lines[-2] + lines[-1]
    assert lines[2].split()[-6:] == ["matrix", "vector", "LDS", "global", "barriers", "all"]
    assert lines[3].split()[-6:] == ["14", "0", "6", "0", "0", "120"]
    assert quickstart.main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["device", "library", "simulated", "rows", "unserved"] and report["simulated"] is True
    (result,) = report["rows"]
    fields = "m n k dtype layout kernel tiling why error instructions counts right"
    assert list(result) == fields.split()
    assert result["instructions"] == 120 and result["counts"] == {"matrix": 14, "lds": 6, "wait": 100}
    for key in (*report, *result):
        assert key in (quickstart.__doc__ or ""), f"{key} is documented"


def test_a_simulated_device_without_its_library_says_how_to_get_it(
    quickstart: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quickstart.main(["--device", "sim:gfx90a"]) == 1
    assert "./pants run examples:quickstart -- --device sim:gfx90a" in capsys.readouterr().err


def test_what_is_no_device_is_wrong_usage(quickstart: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert quickstart.main(["--device", "cuda:x"]) == 2
    assert "device is 'cuda:x'; allowed" in capsys.readouterr().err
