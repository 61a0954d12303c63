"""Microseconds that Python adds to a launch, against a kernel that does nothing; prints JSON.

Usage: overhead.py FOLDER, a library that serves fp16 rrr (`run` builds one). Figures are CPU time of the calling
thread, so that other work on the machine does not count: medians of interleaved repeats with their spread.
"above_raw_us" is the difference to the bare ctypes call of tw_plan_launch.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.dispatch import Dispatcher, GemmProblem, native

REPEATS, CALLS = 21, 20000


def _time(call: Callable[[], Any]) -> float:
    start = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - start) / CALLS / 1000


def main() -> int:
    """Measure, print JSON, return the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    dispatcher = Dispatcher([sys.argv[1]])
    problem = GemmProblem(64, 64, 64, dtype="fp16", layout="rrr")
    plan = dispatcher.plan(problem)
    a, b, out = (np.zeros((64, 64), np.float16) for _ in range(3))
    others = [np.zeros((64, 64), np.float16) for _ in range(2)]
    pointers = [array.ctypes.data for array in (a, b, out)]
    bound = plan.bind(a, b, out=out)
    launch, handle, reference = plan._launch, plan._handle, bound._state.reference
    turn = [0]

    def fresh_arrays() -> None:
        turn[0] ^= 1
        plan(others[turn[0]], b, out=out)

    def empty() -> None:
        pass

    ways: dict[str, Callable[[], Any]] = {
        "loop": empty,
        "raw_ctypes_launch": lambda: launch(handle, reference),
        "bound_plan": lambda: bound(),
        "plan_same_arrays": lambda: plan(a, b, out=out),
        "plan_pointers": lambda: plan(pointers[0], pointers[1], out=pointers[2]),
        "plan_other_arrays": fresh_arrays,
        "dispatcher_plan_hit": lambda: dispatcher.plan(problem),
        "gemm_with_out": lambda: dispatcher.gemm(a, b, out=out),
        "gemm": lambda: dispatcher.gemm(a, b),
    }
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, call in ways.items():
            samples[name].append(_time(call))
    raw = statistics.median(samples["raw_ctypes_launch"])
    figures = {
        name: {
            "median_us": round(statistics.median(values), 3),
            "min_us": round(min(values), 3),
            "p90_us": round(sorted(values)[len(values) * 9 // 10], 3),
            "above_raw_us": round(statistics.median(values) - raw, 3),
        }
        for name, values in samples.items()
    }
    assert native.library().tw_plan_launch is launch
    print(json.dumps({"python": platform.python_version(), "calls": CALLS, "repeats": REPEATS, **figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
