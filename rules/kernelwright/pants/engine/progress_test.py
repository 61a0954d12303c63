from __future__ import annotations

import logging

import pytest

from kernelwright.pants.engine import progress
from kernelwright.pants.engine.progress import Progress


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger=progress.__name__)
    return caplog


def test_a_line_every_ten_seconds_says_how_many_kernels_are_done(lines: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    build = Progress("liba.so for x86_64_v3", 400, clock)
    build.start(200)
    build.start(200)
    for _ in range(100):
        clock.now += 0.25
        build.finish_one()
    assert lines.messages == [
        "Building liba.so for x86_64_v3: 400 kernels",
        "liba.so for x86_64_v3: 40 of 400 kernels done",
        "liba.so for x86_64_v3: 80 of 400 kernels done",
    ]


def test_kernels_of_lanes_that_pants_remembers_count_as_done(lines: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    build = Progress("lib", 400, clock)
    build.start(50)
    clock.now += 11
    build.finish_one()
    assert lines.messages[-1] == "lib: 351 of 400 kernels done"


def test_the_last_kernel_is_no_line(lines: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    build = Progress("lib", 1, clock)
    build.start(1)
    clock.now += 100
    build.finish_one()
    assert lines.messages == ["Building lib: 1 kernel"]


def test_a_build_that_begins_anew_counts_anew() -> None:
    progress.begin("lib", 3)
    first = progress.of("lib")
    first.start(3)
    progress.begin("lib", 3)
    assert progress.of("lib") is not first
