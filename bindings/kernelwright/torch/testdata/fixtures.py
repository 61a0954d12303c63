"""Fixtures of tests with torch, imported by conftest files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import torch
from kernelwright.torch import dispatchers, reset_report, strict, use
from kernelwright.torch.testdata import mocked


@pytest.fixture(autouse=True)
def strictness(request: Any) -> Iterator[None]:
    """Torch's own operators would hide unserved problems. Modules that test them set ``FALLS_BACK``."""
    if getattr(request.module, "FALLS_BACK", False):
        yield
    else:
        with strict():
            yield


@pytest.fixture
def mocks_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use only mock kernels; counts, random numbers and compiled graphs start anew."""
    monkeypatch.setattr(dispatchers, "_in_use", {})
    use(mocked.dispatcher())
    reset_report()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
