"""Convolutions are measured once and remembered as products are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelwright.dispatch import ConvProblem, Device, Dispatcher, KernelLibrary
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.remembering import measured
from kernelwright.tile_engine.remembering.measured import MeasuredSelection
from kernelwright.tile_engine.remembering.memory import describe_device, read_memory

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = os.environ.get("KERNELWRIGHT_CONVOLUTIONS", str(ROOT / "examples/convolution/kernels"))
PROBLEM = ConvProblem("forward", 1, 8, 16, (7, 9), (3, 3), pad_left=1)


def test_a_convolution_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, memory = KernelLibrary.load_for("cpu", LIBRARY), tmp_path / "memory.json"
    fast = Settings(warmup=1, duration_s=0.001, rounds=1)
    first = Dispatcher(library, selection=MeasuredSelection(library, memory, settings=fast)).select(PROBLEM)
    ((key, times),) = read_memory(memory).items()
    where, digest, record = json.loads(key)
    assert (where, digest) == (describe_device(Device("cpu")), library.manifest.sha256)
    assert record["direction"] == "forward" and (record["hi"], record["wi"], record["pad_w"]) == (7, 9, 1)
    assert first.kernel.identity == min(times, key=times.__getitem__).partition(":")[0]
    monkeypatch.setattr(measured, "Measurement", None)  # nothing is measured again
    assert Dispatcher(library, selection=MeasuredSelection(library, memory)).select(PROBLEM).kernel == first.kernel
