"""Fixtures of tests with torch, which conftest files import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import torch
from kernelwright.torch import dispatchers, reset_report, strict, use
from kernelwright.torch.testdata import mocked


@pytest.fixture(autouse=True)
def strictness(request: Any) -> Iterator[None]:
    """Torch's own operators would hide what no kernel serves. Modules that are about them set ``FALLS_BACK``."""
    if getattr(request.module, "FALLS_BACK", False):
        yield
    else:
        with strict():
            yield


@pytest.fixture
def mocks_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Mock kernels alone are in use; counts, random numbers and compiled graphs begin anew."""
    monkeypatch.setattr(dispatchers, "_in_use", {})
    use(mocked.dispatcher())
    reset_report()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
