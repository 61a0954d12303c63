"""Tests of operators are strict: torch's own operators would hide what no kernel serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kernelwright.torch import strict


@pytest.fixture(autouse=True)
def strictness(request: Any) -> Iterator[None]:
    """Not in modules that are about what torch computes: they set ``FALLS_BACK``."""
    if getattr(request.module, "FALLS_BACK", False):
        yield
    else:
        with strict():
            yield
