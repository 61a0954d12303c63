"""A plugin of pytest by which a skipped test has failed: what is skipped here runs nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def _fail(report: Any) -> None:
    if report.skipped:
        report.outcome, report.longrepr = "failed", f"skipped, but must run here: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """A skipped test."""
    outcome: Any = yield
    _fail(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """A skipped module."""
    outcome: Any = yield
    _fail(outcome.get_result())
