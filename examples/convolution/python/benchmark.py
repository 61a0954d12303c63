"""Times kernels of each direction: benchmark.py [--library DIR] [--sizes 28,56] [--repeats 7] [--json].

Each is timed in turn within each repeat, so that other work on the machine hits all; medians are printed. What it shows
is this machine at this moment: no figure of this example is asserted anywhere. benchmarks/cpu/conv.py compares with
torch.
"""

from __future__ import annotations

import json
import statistics
import time

import numpy as np
from shared import example_parser, open_library

from kernelwright.dispatch import ConvProblem, Dispatcher

DIRECTIONS = ("forward", "backward_data", "backward_weight")


def main(arguments: list[str] | None = None) -> None:
    """Time 3x3 convolutions in fp32 and print GFLOP/s."""
    parser = example_parser(__doc__)
    parser.add_argument("--sizes", default="28,56", help="height and width, separated by commas")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rows = []
    for size in map(int, options.sizes.split(",")):
        rows += measured(dispatcher, size, options.channels, options.repeats)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['problem']:<70} {row['gflops']:>8.1f} GFLOP/s  {row['kernel']}")


def measured(dispatcher: Dispatcher, size: int, channels: int, repeats: int) -> list[dict[str, object]]:
    """A row for each direction."""
    calls, times = [], []
    for direction in DIRECTIONS:
        problem = ConvProblem(direction, 1, channels, channels, (size, size), 3, pad_left=1)
        plan = dispatcher.plan(problem)
        shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
        order = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[direction]
        a, b, out = (np.ones(shapes[kind], np.float32) for kind in order)
        calls.append((problem, plan.kernel.name, plan.bind(a, b, out)))  # fixed memory: the shortest call there is
        times.append([])
    for repeat in range(repeats + 1):  # the first warms caches, threads and clocks up
        for (_, _, call), kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if repeat:
                kept.append(time.perf_counter() - start)
    return [
        {"problem": str(p), "kernel": kernel, "gflops": round(p.flops / max(statistics.median(kept), 1e-9) / 1e9, 1)}
        for (p, kernel, _), kept in zip(calls, times, strict=True)
    ]


if __name__ == "__main__":
    main()
