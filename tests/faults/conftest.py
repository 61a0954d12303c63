"""One workspace with a store of its own for all tests that need no remote cache: a daemon takes long to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.builds import CheapBuilds

LIBRARIES = 2


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheapBuilds]:
    """Two libraries, built."""
    build = CheapBuilds(tmp_path_factory.mktemp("builds"), LIBRARIES)
    try:
        first = build.package(*range(LIBRARIES), timeout=900)
        assert first.exit_code == 0, first.stderr
        yield build
    finally:
        build.close()
