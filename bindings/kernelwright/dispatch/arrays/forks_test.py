from __future__ import annotations

import os
import threading
import time

import pytest

from kernelwright.dispatch.arrays import forks
from kernelwright.dispatch.arrays.forks import Undivided

TRIAL_S = 0.3


class Trial:
    """A function that is undivided, and takes a while."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = False
        self.outcome = Undivided(self._run)

    def _run(self) -> int:
        self.began.set()
        time.sleep(TRIAL_S)
        self.ended = True
        return 7


def fork_during(trial: Trial) -> tuple[int, float]:
    """The exit code of a child, forked in the midst of another thread's trial, that asks for its result; seconds."""
    thread = threading.Thread(target=trial.outcome)
    thread.start()
    trial.began.wait()
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(trial.outcome() if trial.ended else 1 + trial.outcome())
    took = time.monotonic() - begin
    thread.join()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), took


def test_a_fork_waits_for_a_trial() -> None:
    trial = Trial()
    assert fork_during(trial)[0] == 7  # the child has its parent's result
    assert trial.outcome() == 7 and trial.outcome.cache_info().misses == 1


def test_a_fork_waits_for_no_trial_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_LONGEST_S", TRIAL_S / 10)
    code, took = fork_during(Trial())
    assert code == 8 and took < TRIAL_S  # the child makes the trial itself: the lock's owner is no thread of its own


def test_a_trial_may_fork() -> None:
    def run() -> int:
        pid = os.fork()
        if pid == 0:
            os._exit(5)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert Undivided(run)() == 5
