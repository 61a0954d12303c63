"""Times of every convolution kernel, with every number of slices, on the tuned networks: what selection is fitted to.

    python benchmarks/gpu/conv_sweep.py --library .gpu/conv/sm_90a --out sweep.json

A line of the results is a problem; ``us`` has the microseconds of a launch by kernel, and by slices where it is
backward weight. Each is the least of a few replays of a graph; benchmarks/gpu/conv.py compares results.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from conv import DIRECTIONS, Case, problem_of, shapes
from results_file import text
from timing import capture, environment, interleaved

from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary, NoKernelError

SLICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
GRAPH_US = 300.0


def timed(dispatcher: Dispatcher, case: Case, problem: ConvProblem) -> float:
    """Microseconds of a launch."""
    case.problem = problem
    call, _ = case.ours(dispatcher)
    count = max(3, int(GRAPH_US / max(4.0, problem.flops / 4e8)))
    return round(min(interleaved({"ours": capture(call, count)}, count, 3)["ours"]), 2)


def swept(dispatchers: dict[str, tuple[dict[str, Any], Dispatcher]], problem: ConvProblem) -> dict[str, float]:
    """Times by kernel, with the number of slices appended after a colon."""
    times, case = {}, Case(problem)
    for name, (spec, dispatcher) in dispatchers.items():
        plain = spec["direction"] == problem.direction and spec["dtype"] == problem.dtype and not spec.get("bias")
        for slices in SLICES if problem.direction == "backward_weight" else (None,):
            sliced = problem if slices is None else replace(problem, split_k=slices)
            try:
                if plain:
                    times[name if slices is None else f"{name}:{slices}"] = timed(dispatcher, case, sliced)
            except NoKernelError:
                continue
    return times


def main() -> int:
    """Sweep, print the fastest kernel of each problem, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--images", type=int, nargs="+", default=[8])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    library = KernelLibrary.load(options.library)
    dispatchers = {
        kernel.name: (kernel.spec, Dispatcher([library], device="cuda:0", selection=kernel.name))
        for kernel in library.kernels
    }
    results = []
    for images in options.images:
        for _, network, shape in shapes(["tuned"], images):
            for direction in DIRECTIONS:
                us = swept(dispatchers, problem_of(shape, direction, "bf16"))
                results.append({"network": network, "shape": shape, "direction": direction, "us": us})
                best = min(us, key=us.__getitem__, default="none")
                print(network, *shape.values(), direction, best, us.get(best), flush=True)
            torch.cuda.empty_cache()
            options.out.write_text(text({"environment": environment(options.library)}, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
