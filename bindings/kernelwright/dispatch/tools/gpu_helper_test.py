from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.tools import gpu_helper
from kernelwright.problems.gemm.problem import GemmProblem


@pytest.fixture
def library(tmp_path: Path) -> Path:
    mocks.native_library()
    return mocks.write_library(tmp_path / "x86_64_v3").parent


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Exit status and the one document on standard output, every key of which is documented."""
    code = gpu_helper.main([str(argument) for argument in arguments])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    inner = [key for part in report.values() if isinstance(part, dict) for key in part]
    for key in (*report, *inner):
        assert key in (gpu_helper.__doc__ or ""), key
    return code, report


def test_a_validated_run_is_one_document(capsys: pytest.CaptureFixture[str], library: Path) -> None:
    code, report = run(capsys, 17, 9, 33, "--validate", "--library", library, "--datatype", "fp32")
    assert code == 0 and report["status"] == "success" and report["device"] == "cpu"
    assert report["problem"] == {"M": 17, "N": 9, "K": 33, "datatype": "fp32", "layout": "rcr"}
    assert report["selected_kernel"] == report["kernel"]["name"] and "fp32_rcr" in report["selected_kernel"]
    assert report["execution"]["time_ms"] > 0 and report["execution"]["flops"] == 2 * 17 * 9 * 33
    assert 1 <= report["execution"]["repeats"] <= gpu_helper.REPEATS
    validation = report["validation"]
    assert (validation["accuracy"], validation["correct_elements"], validation["total_elements"]) == (100.0, 153, 153)
    assert 0 <= validation["max_error"] < 1e-4


@pytest.mark.parametrize("layout", ["rcr", "rrr", "ccr", "crr"])
def test_layouts_and_empty_problems(capsys: pytest.CaptureFixture[str], library: Path, layout: str) -> None:
    for shape in ((5, 6, 7), (0, 6, 7), (5, 6, 0)):
        options = ("--validate", "--library", library, "--datatype", "fp32", "--layout", layout)
        assert run(capsys, *shape, *options)[0] == 0


def test_without_validation_there_is_none(capsys: pytest.CaptureFixture[str], library: Path) -> None:
    named = "gemm_fp32_rcr_32x32x32"
    code, report = run(capsys, 4, 4, 4, "--library", library, "--datatype", "fp32", "--kernel", named)
    assert code == 0 and "validation" not in report and report["selected_kernel"] == named


def test_a_wrong_result_is_exit_status_3(capsys: pytest.CaptureFixture[str], library: Path) -> None:
    """The mock's fp16 kernel writes nothing."""
    options = ("--library", library, "--datatype", "fp16", "--layout", "rrr")
    code, report = run(capsys, 5, 6, 7, "--validate", *options)
    assert code == 3 and report["status"] == "wrong result"
    assert report["validation"] == {
        "accuracy": 0.0, "max_error": None, "correct_elements": 0, "total_elements": 30,
    }  # fmt: skip
    assert run(capsys, 5, 6, 7, *options)[1]["status"] == "success", "nobody looked"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--datatype", "int8"], 1, "the mock runtime said no"),
        (["--datatype", "bf16"], 1, "none of 9 kernels serves"),
        (["--datatype", "fp32", "--kernel", "nobody"], 1, "nobody"),
        (["--library", "nowhere"], 1, "nowhere is not a folder"),
        (["--layout", "xyz"], 2, "layout is 'xyz'"),
        (["--device", "cuda:x"], 2, "cuda:x"),
    ],
)
def test_what_cannot_run_ends_with_a_document(
    capsys: pytest.CaptureFixture[str], library: Path, options: list[str], status: int, message: str
) -> None:
    code, report = run(capsys, 4, 4, 4, "--library", library, *options)
    assert code == status and report["status"] == "error" and message in report["error"]


@pytest.mark.parametrize(
    "arguments", [["4", "4"], ["4", "4", "-4"], ["4", "4", "x"], ["4", "4", "4", "--datatype", "fp4"]]
)
def test_wrong_usage_is_exit_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        gpu_helper.main(arguments)
    assert caught.value.code == 2


def test_a_program_may_bring_its_libraries(capsys: pytest.CaptureFixture[str], library: Path) -> None:
    asked = []

    def packaged(device: Device) -> Path:
        asked.append(str(device))
        return library

    assert gpu_helper.main(["4", "4", "4", "--datatype", "fp32"], packaged) == 0
    assert asked == ["cpu"] and json.loads(capsys.readouterr().out)["status"] == "success"


def test_simulated_runs_have_instructions_and_no_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a stand-in for the simulator: the mock kernel runs on this machine, its reports are made up."""

    class Fake(ModuleType):
        Buffer = staticmethod(lambda *values, **names: None)
        SimulatorError = ZeroDivisionError
        library_path = staticmethod(lambda: tmp_path / "runtime.so")
        run = staticmethod(lambda arch, buffers, launch: launch())
        last_reports = staticmethod(lambda: [SimpleNamespace(instructions=60, counts={})] * 2)

    for module in ("kernelwright.simulator", "kernelwright.simulator.run.device"):
        monkeypatch.setitem(sys.modules, module, Fake(module))
    mocks.native_library()
    mocks.write_library(tmp_path / "gfx942", "MOCK_ANY_DEVICE", arch="gfx942", backend="ck_tile")
    options = ("--validate", "--device", "sim:gfx942", "--library", tmp_path, "--datatype", "fp32")
    code, report = run(capsys, 5, 6, 7, *options)
    assert code == 0 and report["execution"] == {"instructions": 120, "flops": 420}


def test_validation_finds_one_wrong_element() -> None:
    problem = GemmProblem(8, 8, 16, dtype="fp16")
    a, b, _ = gpu_helper._operands(problem, fnuz=False)
    right = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    assert gpu_helper._validated(problem, a, b, right)["correct_elements"] == 64
    right[3, 4] *= np.float16(1.01)
    assert gpu_helper._validated(problem, a, b, right)["correct_elements"] == 63
    whole = GemmProblem(8, 8, 16, dtype="int8")
    a, b, _ = gpu_helper._operands(whole, fnuz=False)
    exact = a.astype(np.int32) @ b.astype(np.int32)
    assert gpu_helper._validated(whole, a, b, exact)["accuracy"] == 100
    exact[0, 0] += 1
    assert gpu_helper._validated(whole, a, b, exact)["correct_elements"] == 63


@pytest.mark.parametrize("fnuz", [False, True])
def test_sums_of_fp8_may_lose_bits_but_not_terms(fnuz: bool) -> None:
    problem = GemmProblem(8, 8, 96, dtype="fp8", dtype_c="bf16")
    a, b, out = gpu_helper._operands(problem, fnuz)
    assert str(a.dtype) == "float8_e4m3" + ("fnuz" if fnuz else "fn") and str(out.dtype) == "bfloat16"
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert gpu_helper._validated(problem, a, b, (exact * (1 + 2**-9)).astype(out.dtype))["correct_elements"] == 64
    exact[3, 4] += 4  # the size of a large term; cuts allow 3 / 8192 of the size of all
    assert gpu_helper._validated(problem, a, b, exact.astype(out.dtype))["correct_elements"] == 63
