"""The library of familiar functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention.compat.library import fmha_library


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged library, or one compiled here."""
    return fmha_library(tmp_path_factory.mktemp("fmha_lib"))
