"""The library of familiar functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged library, or one compiled here."""
    return mocks.compat_library("libdispatcher_fmha_lib.so", "attention", tmp_path_factory.mktemp("fmha_lib"))
