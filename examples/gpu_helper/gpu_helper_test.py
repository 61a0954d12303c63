"""The program on the packaged CPU library."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def example() -> ModuleType:
    """The module from its file, however the tests are run."""
    path = Path(__file__).with_name("gpu_helper.py")
    spec = importlib.util.spec_from_file_location("gpu_helper_under_test", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("datatype", ["fp32", "fp16"])
def test_packaged_kernels_are_right(example: ModuleType, capsys: pytest.CaptureFixture[str], datatype: str) -> None:
    assert example.main(["65", "130", "257", "--validate", "--datatype", datatype]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "success" and report["validation"]["accuracy"] == 100
    assert report["kernel"]["arch"].startswith("x86_64_v")
