"""Real CPU kernels in use: the shipped ones, and those of this folder's BUILD file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.torch import dispatchers, use
from kernelwright.torch.testdata.fixtures import strictness as strictness


@pytest.fixture(scope="session")
def dispatcher() -> Dispatcher:
    shipped = KernelLibrary.load_for("cpu", os.environ["KERNELWRIGHT_KERNELS"])
    more = sorted(Path(os.environ["KERNELWRIGHT_MORE_KERNELS"]).rglob("manifest.json"))
    assert more, "tests/pytorch/run builds them"
    attention = KernelLibrary.load_for("cpu", os.environ["KERNELWRIGHT_FMHA_KERNELS"])
    return Dispatcher([shipped, attention, *(KernelLibrary.load(path) for path in more)])


@pytest.fixture(autouse=True)
def in_use(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dispatchers, "_in_use", {})
    use(dispatcher)
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
