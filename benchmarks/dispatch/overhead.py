"""Microseconds that Python adds to a launch, against a kernel that does nothing; prints JSON.

Usage: overhead.py FOLDER, a library that serves fp16 rrr (`run` builds one). Figures are CPU time of the calling
thread, so that other work on the machine does not count: medians of interleaved repeats with their spread.
"above_raw_us" is the median difference to the bare ctypes call of tw_plan_launch in the same repeat. Rows for torch
tensors (on CPU) are there where torch can be imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.dispatch import Dispatcher, GemmProblem, Plan, native

REPEATS, CALLS = 21, 5000


def _time(call: Callable[[], Any]) -> float:
    start = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - start) / CALLS / 1000


def _in_turn(plan: Plan, operands: list[tuple[Any, Any, Any]]) -> Callable[[], Any]:
    turn = [0]

    def call() -> None:
        turn[0] ^= 1
        a, b, out = operands[turn[0]]
        plan(a, b, out=out)

    return call


def main() -> int:
    """Measure, print JSON, return the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    dispatcher = Dispatcher([sys.argv[1]])
    problem = GemmProblem(64, 64, 64, dtype="fp16", layout="rrr")
    plan = dispatcher.plan(problem)
    a, b, out = (np.zeros((64, 64), np.float16) for _ in range(3))
    pointers = [array.ctypes.data for array in (a, b, out)]
    bound = plan.bind(a, b, out=out)
    launch, handle, reference = plan._launch, plan._handle, bound._state.reference

    def empty() -> None:
        pass

    ways: dict[str, Callable[[], Any]] = {
        "loop": empty,
        "raw_ctypes_launch": lambda: launch(handle, reference),
        "bound_plan": lambda: bound(),
        "plan_same_arrays": lambda: plan(a, b, out=out),
        "plan_other_arrays": _in_turn(plan, [(np.zeros((64, 64), np.float16), b, out) for _ in range(2)]),
        "plan_pointers": lambda: plan(pointers[0], pointers[1], out=pointers[2]),
        "dispatcher_plan_hit": lambda: dispatcher.plan(problem),
        "gemm_with_out": lambda: dispatcher.gemm(a, b, out=out),
        "gemm": lambda: dispatcher.gemm(a, b),
    }
    with contextlib.suppress(ImportError):
        torch = importlib.import_module("torch")
        tensors = [torch.zeros(64, 64, dtype=torch.float16) for _ in range(4)]
        # Another plan, since a plan remembers how the arrays of its last call looked.
        torch_plan = Dispatcher([sys.argv[1]]).plan(problem)
        ways["torch_plan_same_tensors"] = lambda: torch_plan(tensors[0], tensors[1], out=tensors[2])
        ways["torch_plan_other_tensors"] = _in_turn(torch_plan, [(tensors[i], *tensors[1:3]) for i in (0, 3)])
        ways["torch_gemm_with_out"] = lambda: dispatcher.gemm(tensors[0], tensors[1], out=tensors[2])
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, call in ways.items():
            samples[name].append(_time(call))
    raw = samples["raw_ctypes_launch"]
    figures = {
        name: {
            "median_us": round(statistics.median(values), 3),
            "min_us": round(min(values), 3),
            "p90_us": round(sorted(values)[len(values) * 9 // 10], 3),
            "above_raw_us": round(statistics.median(v - r for v, r in zip(values, raw, strict=True)), 3),
        }
        for name, values in samples.items()
    }
    assert native.library().tw_plan_launch is launch
    print(json.dumps({"python": platform.python_version(), "calls": CALLS, "repeats": REPEATS, **figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
