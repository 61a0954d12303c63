"""Coverage is not traced here: it would nearly double the seconds of these tests, and the simulator's own tests, which
execute the same lines, are traced."""

from __future__ import annotations

import sys


def pytest_collection_finish() -> None:
    coverage = sys.modules.get("coverage")
    running = coverage.Coverage.current() if coverage else None
    if running:
        running.stop()
