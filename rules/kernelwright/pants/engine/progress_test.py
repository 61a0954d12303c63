from __future__ import annotations

import logging
import threading
from typing import List

import pytest

from kernelwright.pants.engine import progress
from kernelwright.pants.engine.progress import Part, Progress


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
        self.progress = Progress("liba.so for x86_64_v3", self.clock, self._watch)
        self.progress.kernels = kernels

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


def names(kernels: int, start: int = 0) -> List[str]:
    return [f"k{n}" for n in range(start, start + kernels)]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger=progress.__name__)
    return caplog


def test_a_line_every_ten_seconds_says_how_many_kernels_are_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(400)
    with build.progress.at_work(*names(200)) as one, build.progress.at_work(*names(200, start=200)) as two:
        for n in range(50):
            for done, kernel in ((one, f"k{n}"), (two, f"k{200 + n}")):
                build.wait(0.25)
                done(kernel)
    assert lines.messages == [
        "Building liba.so for x86_64_v3: 400 kernels",
        "liba.so for x86_64_v3: 39 of 400 kernels done",
        "liba.so for x86_64_v3: 79 of 400 kernels done",
    ]
    assert build.threads == 1


def test_a_kernel_that_compiles_for_long_does_not_silence_the_build(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(1)
    with build.progress.at_work("k") as done:
        build.wait(35)
        done("k")
    assert lines.messages[1:] == ["liba.so for x86_64_v3: 0 of 1 kernel done"] * 3


def test_kernels_of_rules_that_pants_remembers_count_as_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(400)
    with build.progress.at_work(*names(50)) as done:
        done("k7")
        build.wait(11)
    assert lines.messages[-1] == "liba.so for x86_64_v3: 351 of 400 kernels done"


def test_a_kernel_is_done_when_no_rule_works_on_it(lines: pytest.LogCaptureFixture) -> None:
    """Rules of its actions run within those of kernels, or before them after a change of a source."""
    build = Watched(3)
    with build.progress.at_work("a", "b") as done:
        with build.progress.at_work("a"):
            build.wait(10)
        with build.progress.at_work("c"):
            build.wait(10)
        done("a")
        build.wait(10)
    assert [line.partition(": ")[2] for line in lines.messages[1:]] == [
        "1 of 3 kernels done",
        "0 of 3 kernels done",
        "2 of 3 kernels done",
    ]


def test_a_link_that_takes_long_is_told_with_all_kernels_done(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(2)
    with build.progress.at_work():
        with build.progress.at_work("a", "b") as done:
            done("a")
            done("b")
        build.wait(35)
    assert lines.messages[1:] == ["liba.so for x86_64_v3: 2 of 2 kernels done"]  # once


def test_a_build_that_ends_or_fails_leaves_nothing_to_wait_for(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(3)
    with pytest.raises(ZeroDivisionError), build.progress.at_work(*names(3)) as done:
        done("k0")
        raise ZeroDivisionError
    build.clock.now += 100
    assert build.progress.tick() is None
    assert lines.messages == ["Building liba.so for x86_64_v3: 3 kernels"]


def test_the_next_build_begins_with_a_line_and_counts_anew(lines: pytest.LogCaptureFixture) -> None:
    build = Watched(3)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), build.progress.at_work(*names(3)):
            raise ZeroDivisionError
        build.clock.now += progress.PAUSE
        assert build.progress.tick() is None
    with build.progress.at_work("k1", "k2"):
        build.wait(10)
    assert lines.messages == [
        *["Building liba.so for x86_64_v3: 3 kernels"] * 3,
        "liba.so for x86_64_v3: 1 of 3 kernels done",
    ]
    assert build.threads == 3


def test_a_run_begins_with_a_line_however_soon_it_follows(lines: pytest.LogCaptureFixture) -> None:
    """Rules of a run that was interrupted may still be there."""
    build = Watched(3)
    with build.progress.at_work("k1"):
        progress.begin_run()
        with build.progress.at_work("k1"), build.progress.at_work("k2"):
            pass
    assert lines.messages == ["Building liba.so for x86_64_v3: 3 kernels"] * 2


def test_rules_that_follow_each_other_are_one_build(lines: pytest.LogCaptureFixture) -> None:
    """Kernels are built before the rule of the library runs, where a source has changed."""
    build = Watched(3)
    for kernels in (["a"], ["b", "c"], []):
        with build.progress.at_work(*kernels) as done:
            for kernel in kernels:
                done(kernel)
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
    progress.of("ticked").kernels = 7
    with progress.at_work(Part("ticked", "k")):
        assert seen.wait(60)
    assert threads[0] is not threading.current_thread()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_rules_of_a_library_share_its_progress() -> None:
    assert progress.of("a") is progress.of("a")
    assert progress.of("a") is not progress.of("b")


def test_actions_of_nothing_are_not_told(lines: pytest.LogCaptureFixture) -> None:
    with progress.at_work(None):
        pass
    with progress.at_work(Part("all of it")):
        pass
    assert lines.messages == ["Building all of it: 0 kernels"]
