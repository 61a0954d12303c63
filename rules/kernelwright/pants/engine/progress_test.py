from __future__ import annotations

import logging
import threading
from typing import List

import pytest

from kernelwright.pants.engine import progress
from kernelwright.pants.engine.progress import Library, Progress


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A build without a thread, and how often one was asked for."""

    def __init__(self, kernels: int) -> None:
        self.clock = Clock()
        self.threads = 0
        self.progress = Progress(Library("liba.so for x86_64_v3", kernels), self.clock, self._watch)

    def _watch(self, _: Progress) -> None:
        self.threads += 1

    def wait(self, seconds: float) -> None:
        """Let time pass, in which the thread ticks when it is due."""
        due = self.progress.tick()
        while due is not None and due <= seconds:
            self.clock.now += due
            seconds -= due
            due = self.progress.tick()
        self.clock.now += seconds


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger=progress.__name__)
    return caplog


def test_a_line_every_ten_seconds_says_how_many_kernels_are_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(400)
    with build.progress.at_work(200) as one, build.progress.at_work(200) as two:
        for done in [one, two] * 50:
            build.wait(0.25)
            done()
    assert lines.messages == [
        "Building liba.so for x86_64_v3: 400 kernels",
        "liba.so for x86_64_v3: 39 of 400 kernels done",
        "liba.so for x86_64_v3: 79 of 400 kernels done",
    ]
    assert build.threads == 1


def test_a_kernel_that_compiles_for_long_does_not_silence_the_build(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(1)
    with build.progress.at_work(1) as done:
        build.wait(35)
        done()
    assert lines.messages[1:] == ["liba.so for x86_64_v3: 0 of 1 kernel done"] * 3


def test_kernels_of_rules_that_pants_remembers_count_as_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(400)
    with build.progress.at_work(50) as done:
        done()
        build.wait(11)
    assert lines.messages[-1] == "liba.so for x86_64_v3: 351 of 400 kernels done"


def test_a_link_that_takes_long_is_told_with_all_kernels_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(2)
    with build.progress.at_work():
        with build.progress.at_work(2) as done:
            done()
            done()
        build.wait(10)
    assert lines.messages[1:] == ["liba.so for x86_64_v3: 2 of 2 kernels done"]


def test_a_build_that_ends_or_fails_leaves_nothing_to_wait_for(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(3)
    with pytest.raises(ZeroDivisionError), build.progress.at_work(3) as done:
        done()
        raise ZeroDivisionError
    build.clock.now += 100
    assert build.progress.tick() is None
    assert lines.messages == ["Building liba.so for x86_64_v3: 3 kernels"]


def test_the_next_build_begins_with_a_line_and_counts_anew(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(3)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), build.progress.at_work(3):
            raise ZeroDivisionError
        build.clock.now += progress.PAUSE
        assert build.progress.tick() is None
    with build.progress.at_work(2):
        build.wait(10)
    assert lines.messages == [
        *["Building liba.so for x86_64_v3: 3 kernels"] * 3,
        "liba.so for x86_64_v3: 1 of 3 kernels done",
    ]
    assert build.threads == 3


def test_rules_that_follow_each_other_are_one_build(lines: pytest.LogCaptureFixture) -> None:
    """Kernels are built before the rule of the library runs, where a source has changed."""
    build = Watched(3)
    for kernels in (1, 2, 0):
        with build.progress.at_work(kernels) as done:
            for _ in range(kernels):
                done()
        build.clock.now += progress.PAUSE / 2
    assert lines.messages == ["Building liba.so for x86_64_v3: 3 kernels"]


def test_a_thread_ticks_while_rules_are_at_work_and_ends_with_them(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    seen = threading.Event()
    threads: List[threading.Thread] = []

    def noticed(record: logging.LogRecord) -> bool:
        if "of 7 kernels done" in record.getMessage():
            threads.append(threading.current_thread())
            seen.set()
        return True

    monkeypatch.setattr(progress._logger, "filters", [noticed])
    build = progress.of(Library("ticked", 7))
    with build.at_work(5):
        assert seen.wait(60)
    assert threads[0] is not threading.current_thread()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_rules_of_a_library_share_its_progress() -> None:
    assert progress.of(Library("a", 3)) is progress.of(Library("a", 3))
    assert progress.of(Library("a", 3)) is not progress.of(Library("a", 4))
