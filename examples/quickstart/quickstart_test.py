from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

from tilewright.dispatch import GemmProblem
from tilewright.dispatch.testdata import mocks


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


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_the_bound_accepts_the_right_result_and_nothing_else(quickstart: ModuleType, dtype: str) -> None:
    problem = GemmProblem(17, 9, 33, dtype=dtype)
    a, b, out = quickstart._operands(problem)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    rounded = exact.astype(out.dtype)
    assert quickstart._error(problem, a, b, rounded) <= 1
    step = np.spacing(np.abs(rounded).astype(np.float32)) if dtype == "fp32" else ml_dtypes.finfo(out.dtype).eps
    wrong = rounded.copy()
    wrong[3, 4] = float(rounded[3, 4]) * 1.05 + 2 * float(np.max(step))
    assert quickstart._error(problem, a, b, wrong) > 1
    wrong[3, 4] = float("nan")
    assert not quickstart.Row("", "", "", "", quickstart._error(problem, a, b, wrong), 0, 0).right


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
    assert report["rows"][0]["kernel"] == "gemm_fp32_rrr_32x32x32" and "bf16" in report["unserved"][0]
    assert quickstart.main(["--library", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "tile 1x2x3" in text and "not run" in text
    monkeypatch.setattr(quickstart, "PROBLEMS", (GemmProblem(5, 6, 7, dtype="fp16", layout="rrr"),))
    assert quickstart.main(["--library", str(tmp_path)]) == 3  # this mock kernel writes nothing
    assert "WRONG" in capsys.readouterr().out
    monkeypatch.setattr(quickstart, "PROBLEMS", small[2:])
    assert quickstart.main(["--library", str(tmp_path)]) == 1
    assert quickstart.main(["--library", str(tmp_path / "nowhere")]) == 1
    assert quickstart.main(["--device", "hip:0"]) == 1
    assert "pass --library" in capsys.readouterr().err
