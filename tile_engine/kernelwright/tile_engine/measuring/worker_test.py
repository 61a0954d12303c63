"""The child process on a library whose kernel prints, and what it says of a device that an error has spoilt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.tile_engine.measuring.measure import FAILED, OK, REFUSED
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.measuring.worker import spoils

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = os.environ.get("KERNELWRIGHT_KERNELS", str(ROOT / "examples/gemm/kernels"))


@pytest.mark.parametrize(
    ("device", "status", "spoilt"),
    [("cuda:0", FAILED, True), ("cuda:0", OK, False), ("cuda:0", REFUSED, False), ("cpu", FAILED, False)],
)
def test_an_error_of_a_launch_stays_in_a_cuda_context(device: str, status: str, spoilt: bool) -> None:
    assert spoils(Device(device, arch="sm_90a" if device != "cpu" else None), {"status": status}) is spoilt


def test_what_a_library_prints_is_no_report(tmp_path: Path) -> None:
    library = KernelLibrary.load_for("cpu", LIBRARY)
    (tmp_path / "sitecustomize.py").write_text("import atexit, os; atexit.register(os.write, 1, b'at the end')")
    kernels = [one.identity for one in library.kernels if "_fp32_r" in one.name][:4]
    request = {
        **{"library": str(library.manifest.path), "device": "cpu", "operation": "gemm", "kernels": kernels},
        **{"record": {"m": 4, "n": 4, "k": 4, "batch": 1, "layout": "rcr", "dtype": "fp32", "dtype_c": "fp32"}},
        "settings": Settings(rounds=1, duration_s=0.001).as_json(),
    }
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path))}
    command = [sys.executable, "-m", "kernelwright.tile_engine.measuring.worker"]
    run = subprocess.run(command, input=json.dumps(request), env=env, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0 and "at the end" in run.stderr, run.stderr
    reports = [event for event in map(json.loads, run.stdout.splitlines()) if "kernel" in event]
    assert {report["kernel"] for report in reports} == set(kernels)
    assert OK in {report["status"] for report in reports} <= {OK, REFUSED}
