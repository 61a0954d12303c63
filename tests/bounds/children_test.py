"""A seed that hangs, crashes or raises is reported, and the others run all the same."""

from __future__ import annotations

import os
import signal
import time

from bounds.children import run_each


def test_the_rest_runs_after_a_seed_that_fails() -> None:
    def work(seed: int) -> None:
        began = time.process_time()
        while seed == 13:
            pass
        if seed == 15:
            os.kill(os.getpid(), signal.SIGSEGV)
        if seed == 17:
            raise ValueError("a word")
        while seed == 18 and time.process_time() - began < 0.05:
            pass

    report = run_each(work, range(10, 20), 0.5)
    assert (report.tried, report.slowest_seed) == (10, 18) and 0.05 <= report.slowest < 0.6
    hang, crash, error = report.failures
    assert "seed 13: takes longer than 0.5 s" in hang
    assert "seed 15: ends the process with status -11" in crash
    assert "seed 17" in error and "ValueError: a word" in error


def test_nothing_fails() -> None:
    assert run_each(abs, range(100), 5).failures == ()
