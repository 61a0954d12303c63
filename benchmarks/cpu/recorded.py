"""A library that was built for a recorded model against the shipped one on that model, as JSON.

The model is a perceptron, relu(x·W + b)·V with 256, 1024 and 256 features in fp32, on 1, 8, 64 and 200 rows. A step is
what a user runs: where a library has no kernel for the first layer with bias and activation, NumPy adds and clips what
the plain product gives. Results are compared with float64 first. In every round each library has its turn, and the
first is another one every time; a round counts the least time of each, ratios (shipped ÷ recorded: above 1 the library
of the recorded model is faster) are taken within a round, and medians over the rounds are reported, with the smallest
and the largest. A program has one library. The threads of two are two pools, which wait awake for the next launch: a
turn begins after a pause in which those of the other library fall asleep, and with two calls that count for nothing.

    ./pants package kernels/gemm:cpu_gemm
    python benchmarks/cpu/recorded.py record --shipped dist/kernels/gemm/cpu_gemm --trace trace.json
    kernelwright build --problems trace.json --budget-kernels 3 --arch x86_64_v4 --name model --trees T.json --out model
    python benchmarks/cpu/recorded.py measure --shipped dist/kernels/gemm/cpu_gemm --recorded model --out result.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import machine
import numpy as np
from ratios import geometric_mean, ratios
from results_file import text

from kernelwright.dispatch import Dispatcher, KernelLibrary, NoKernelError, record

ROWS = (1, 8, 64, 200)
FEATURES = (256, 1024, 256)
_CALLS, _WARMING = 30, 2  # of a step per round
_PAUSE_S = 0.001  # a library's workers wait for about 70 us before they sleep
Step = Callable[[], Any]


class Model:
    """The perceptron on a number of rows."""

    def __init__(self, rows: int) -> None:
        """Draw weights and rows."""
        draw = np.random.default_rng(rows)
        wide, hidden, out = FEATURES
        shapes = ((rows, wide), (hidden, wide), (hidden,), (out, hidden))
        self.x, self.w, self.bias, self.v = (draw.standard_normal(shape).astype(np.float32) for shape in shapes)

    def exact(self) -> Any:
        """The result in float64."""
        return np.maximum(self.x.astype(np.float64) @ self.w.T + self.bias, 0) @ self.v.T

    def step(self, dispatcher: Dispatcher) -> Step:
        """One step with a library, using its fused kernel for the first layer if it has one."""

        def fused() -> Any:
            hidden = dispatcher.gemm(self.x, self.w.T, ds=(self.bias,), activation="relu")
            return dispatcher.gemm(hidden, self.v.T)

        def apart() -> Any:
            hidden = dispatcher.gemm(self.x, self.w.T)
            hidden += self.bias
            np.maximum(hidden, 0, out=hidden)
            return dispatcher.gemm(hidden, self.v.T)

        try:
            fused()
        except NoKernelError:
            return apart
        return fused


def main(arguments: Sequence[str] | None = None) -> None:
    """Record the model, or measure both libraries on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "measure"))
    parser.add_argument("--shipped", type=Path, required=True)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    shipped = Dispatcher(KernelLibrary.load_for("cpu", options.shipped))
    if options.what == "record":
        with record(options.trace):
            for rows in ROWS:
                Model(rows).step(shipped)()
        return
    recorded = Dispatcher(KernelLibrary.load_for("cpu", options.recorded))
    shipped.set_num_threads(options.threads)
    recorded.set_num_threads(options.threads)
    results = [measured(Model(rows), shipped, recorded, options.rounds) for rows in ROWS]
    mean = round(geometric_mean([result["shipped ÷ recorded"][0] for result in results]), 3)
    kernels = {"shipped": len(shipped.kernels), "recorded": len(recorded.kernels)}
    head = {"machine": machine.describe(numpy=np.__version__), "threads": options.threads, "kernels": kernels}
    print(json.dumps({"geometric_mean": mean, "results": results}, indent=1))
    if options.out:
        options.out.write_text(text({**head, "geometric_mean": mean}, results))


def measured(model: Model, shipped: Dispatcher, recorded: Dispatcher, rounds: int) -> dict[str, Any]:
    """Times of a step with each library, and their ratio. Raises ValueError if a result is wrong."""
    steps = {"shipped": model.step(shipped), "recorded": model.step(recorded)}
    exact = model.exact()
    for name, step in steps.items():
        if not np.allclose(step(), exact, rtol=1e-4, atol=1e-3):
            raise ValueError(f"the {name} library computes {len(model.x)} rows wrong")
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds):
        for name in list(steps)[:: 1 if number % 2 else -1]:
            times[name].append(least_s(steps[name]))
    speedups = ratios(times["shipped"], times["recorded"])
    return {
        "rows": len(model.x),
        "fused": {name: step.__name__ == "fused" for name, step in steps.items()},
        "microseconds": {name: round(statistics.median(values) * 1e6, 1) for name, values in times.items()},
        "shipped ÷ recorded": [round(v, 3) for v in (statistics.median(speedups), min(speedups), max(speedups))],
    }


def least_s(step: Step) -> float:
    """The minimum time of a step, over calls without interleaved calls of another library."""
    time.sleep(_PAUSE_S)
    for _ in range(_WARMING):
        step()
    least = float("inf")
    for _ in range(_CALLS):
        begin = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - begin)
    return least


if __name__ == "__main__":
    main()
