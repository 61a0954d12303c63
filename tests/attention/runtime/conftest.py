"""Dispatchers of the tests of this folder."""

from __future__ import annotations

import pytest

from kernelwright.dispatch import Dispatcher
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="session")
def naive() -> Dispatcher:
    """Naive fp32 kernels of every family and feature: no part of the product, they show what reaches kernels."""
    mocks.native_library()
    return Dispatcher(mocks.attention_library())
