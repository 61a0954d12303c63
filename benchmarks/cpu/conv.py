"""Convolutions of 15 networks in fp32, kernels chosen by the dispatcher, against torch (oneDNN), interleaved, as JSON.

Blocks were chosen while looking at the networks under ``tuned`` of ``benchmarks/shapes/conv.json``; a claim is made on
those under ``held_out``, on which nothing was chosen. Both sides read the same channels-last tensors and allocate their
results with torch; whole calls are compared: ``dispatcher.conv_forward(x, w)`` with ``conv2d``, and the gradients with
``aten::convolution_backward`` asked for that gradient alone. Every result is compared first: operands are small
integers, so both must be exact. Processors change their clock and share their caches with whatever else runs, so calls
take turns in every round; a round counts the least time of each call, ratios (torch ÷ ours: above 1 we are faster) are
taken within a round, and medians over the rounds are reported, with the smallest and the largest.

    ./pants package kernels/convolution:cpu_convolution
    python benchmarks/cpu/conv.py --library dist/kernels/convolution/cpu_convolution --threads 2 --out result.json

On a machine with other work, ``--threads 1 --processor-time`` counts the processor time of the one thread that both
sides compute in, in place of the time that passes; caches and memory are shared all the same.

``--library`` is what KernelLibrary.load_for takes. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is
installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from ratios import geometric_mean, ratios
from results_file import text

SHAPES = Path(__file__).resolve().parents[1] / "shapes/conv.json"
DIRECTIONS = ("forward", "backward_data", "backward_weight")
Call = Callable[[], Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line for each shape and direction and the geometric means, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sets", nargs="+", default=["tuned", "held_out"])
    parser.add_argument("--directions", nargs="+", default=list(DIRECTIONS), choices=DIRECTIONS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if options.processor_time and options.threads != 1:
        parser.error("--processor-time is that of one thread; pass --threads 1")
    clock = time.thread_time if options.processor_time else time.perf_counter
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when torch is loaded

    import machine
    import torch

    from kernelwright.dispatch import Dispatcher, KernelLibrary

    torch.set_num_threads(options.threads)
    dispatcher = Dispatcher(KernelLibrary.load_for("cpu", options.library))
    dispatcher.set_num_threads(options.threads)
    results = []
    for kind, network, shape in shapes(options.sets):
        for direction in options.directions:
            ours, theirs, kernel, flops = calls(dispatcher, shape, direction)
            check(ours(), theirs(), f"{network} {shape} {direction}")
            least = seconds({"ours": ours, "torch": theirs}, options.rounds, clock)
            speedups = ratios(least["torch"], least["ours"])
            rates = {name: round(1e-9 * flops / statistics.median(values), 1) for name, values in least.items()}
            spread = [round(value, 3) for value in (statistics.median(speedups), min(speedups), max(speedups))]
            results.append({
                "set": kind, "network": network, "shape": shape, "direction": direction, "kernel": kernel,
                "gflops": rates, "ratio": spread,
            })  # fmt: skip
            print(f"{kind:>9} {network:<16} {direction:<16} {shape} GFLOP/s {rates}; ratio {spread}", flush=True)
    means = {
        f"{kind} {direction}": figures([r for r in results if (r["set"], r["direction"]) == (kind, direction)])
        for kind in options.sets
        for direction in options.directions
    }
    print(json.dumps(means, indent=1))
    counted = "processor time" if options.processor_time else "time"
    report = {
        "machine": machine.describe(torch=torch.__version__),
        "threads": options.threads,
        "counted": counted,
        "torch ÷ ours": means,
    }
    if options.out:
        options.out.write_text(text(report, results))


def figures(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The geometric mean and the worst of the ratios over all shapes."""
    speedups = [result["ratio"][0] for result in results]
    return {"geometric_mean": round(geometric_mean(speedups), 3), "worst": min(speedups)}


def shapes(sets: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Set, network, and a convolution as column values by name."""
    listed = json.loads(SHAPES.read_text())
    for kind in sets:
        for network, rows in listed[kind].items():
            for row in rows:
                yield kind, network, dict(zip(listed["columns"], row, strict=True))


def calls(dispatcher: Any, shape: dict[str, Any], direction: str) -> tuple[Call, Call, str, int]:
    """Our call, torch's, the chosen kernel, and the number of multiplications and additions."""
    import torch

    from kernelwright.dispatch import ConvProblem

    dims = len(shape["size"])
    along = {name: _listed(shape[name], dims) for name in ("filter", "stride", "padding", "dilation")}
    problem = ConvProblem(
        direction, shape["n"], shape["c"], shape["k"], shape["size"], along["filter"], shape["groups"],
        along["stride"], along["dilation"], along["padding"],
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)

    def tensor(wanted: Sequence[int]) -> Any:
        return torch.randint(-2, 3, tuple(wanted), generator=generator).float()

    x, w, dy = tensor(problem.x_shape), tensor(problem.w_shape), tensor(problem.y_shape)
    first = (0, dims + 1, *range(1, dims + 1))  # to torch's order of dimensions, without a copy
    tx, tw, tdy = (one.permute(first) for one in (x, w, dy))
    options: dict[str, Any] = {name: tuple(along[name]) for name in ("stride", "padding", "dilation")}
    options["groups"] = shape["groups"]
    size, filter = problem.sizes, tuple(along["filter"])
    ours: dict[str, Call] = {
        "forward": lambda: dispatcher.conv_forward(x, w, **options),
        "backward_data": lambda: dispatcher.conv_backward_data(dy, w, size, **options),
        "backward_weight": lambda: dispatcher.conv_backward_weight(x, dy, filter, **options),
    }
    convolve = getattr(torch.nn.functional, f"conv{dims}d")
    back = (list(along["stride"]), list(along["padding"]), list(along["dilation"]), False, [0] * dims, shape["groups"])

    def gradient(which: int) -> Any:
        mask = [which == 0, which == 1, False]
        return torch.ops.aten.convolution_backward(tdy, tx, tw, None, *back, mask)[which]

    last = (0, *range(2, dims + 2), 1)
    theirs: dict[str, Call] = {
        "forward": lambda: convolve(tx, tw, None, *back[:3], shape["groups"]).permute(last),
        "backward_data": lambda: gradient(0).permute(last),
        "backward_weight": lambda: gradient(1).permute(last),
    }
    return ours[direction], theirs[direction], dispatcher.select(problem).kernel.name, problem.flops


def _listed(value: Any, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value)


def check(ours: Any, theirs: Any, what: str) -> None:
    """Exit unless both are equal; sums of small integers are exact in fp32 up to 2^24."""
    import torch

    if not torch.equal(ours, theirs):
        raise SystemExit(f"{what}: results differ by up to {float((ours - theirs).abs().max())}")


def seconds(timed: dict[str, Call], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """The minimum time of a call in each round by a clock; calls take turns."""
    least: dict[str, list[float]] = {name: [math.inf] * rounds for name in timed}
    for turn in range(rounds):
        names = list(timed)
        for name in names[turn % 2 :] + names[: turn % 2]:
            call, end = timed[name], clock() + 0.05
            while True:
                start = clock()
                call()
                now = clock()
                least[name][turn] = min(least[name][turn], now - start)
                if now > end:
                    break
    return least


if __name__ == "__main__":
    main()
