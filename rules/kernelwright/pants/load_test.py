"""The plugin loads with the Pants that is tested, and Pants sees every call in its rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def loaded() -> dict[str, Any]:
    folder = os.environ.get("KERNELWRIGHT_TEST_PANTS", "")
    argv = [sys.executable, str(PLUGIN / "kernelwright/pants/testing/load.py"), folder, str(PLUGIN)]
    described: dict[str, Any] = json.loads(subprocess.check_output(argv, text=True))
    return described


def test_every_module_is_imported(loaded: dict[str, Any]) -> None:
    files = [path.relative_to(PLUGIN).with_suffix("") for path in (PLUGIN / "kernelwright/pants").rglob("*.py")]
    modules = {".".join(path.parts).replace(".__init__", "") for path in files if not path.name.endswith("_test")}
    left_out = {name for name in modules if ".testing" in name or ".compat.pants_" in name}
    assert modules - left_out - {"kernelwright.pants"} <= set(loaded["modules"])


def test_pants_sees_the_calls_of_every_rule(loaded: dict[str, Any]) -> None:
    assert len(loaded["rules"]) > 30
    for name, rule in loaded["rules"].items():
        assert bool(rule["calls"]) == rule["awaits"], name


def test_every_rule_that_is_called_is_registered(loaded: dict[str, Any]) -> None:
    called = {call.partition("(")[0] for rule in loaded["rules"].values() for call in rule["calls"]}
    assert called
    assert {name for name in called if name.startswith("kernelwright.")} <= set(loaded["rules"])


def test_targets_are_registered(loaded: dict[str, Any]) -> None:
    assert {"gemm_kernel", "kernel_set", "kernel_library", "native_library"} <= set(loaded["targets"])
