"""Times kernels against NumPy: benchmark.py [--library DIR] [--sizes 256,512] [--repeats 7] [--json].

Both are timed in turn within each repeat, so that other work on the machine hits both; medians are printed. What it
shows is this machine at this moment: no figure of this example is asserted anywhere.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem


def main(arguments: list[str] | None = None) -> None:
    """Time squares in fp32 and print GFLOP/s."""
    parser = example_parser(__doc__)
    parser.add_argument("--sizes", default="256,512,1024", help="M = N = K, separated by commas")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rows = []
    for size in map(int, options.sizes.split(",")):
        problem = GemmProblem(size, size, size, dtype="fp32", layout="rrr")
        rng = np.random.default_rng(size)
        a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
        out, other = np.empty_like(a), np.empty_like(a)
        bound = dispatcher.plan(problem).bind(a, b, out=out)  # fixed memory: the shortest call there is
        ours, numpys = in_turn([bound, lambda a=a, b=b, other=other: np.matmul(a, b, out=other)], options.repeats)
        np.testing.assert_allclose(out, other, rtol=1e-3, atol=1e-3)
        kernel = dispatcher.select(problem).kernel.name
        rows.append({"size": size, "kernel": kernel, "gflops": rate(problem, ours), "numpy": rate(problem, numpys)})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['size']:>5}  {row['gflops']:>8.1f} GFLOP/s, NumPy {row['numpy']:>8.1f}  {row['kernel']}")


def in_turn(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Median seconds of each call."""
    times: list[list[float]] = [[] for _ in calls]
    for repeat in range(repeats + 1):  # the first warms caches, threads and clocks up
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if repeat:
                kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


def rate(problem: GemmProblem, seconds: float) -> float:
    """GFLOP/s."""
    return round(problem.flops / max(seconds, 1e-9) / 1e9, 1)


if __name__ == "__main__":
    main()
