"""Linear layers with packed weights: ``kernelwright.torch.linear`` with and without ``prepack``, and torch's calls.

Layers are those of benchmarks/shapes/held_out.json, on which nothing was tuned; numbers of rows are drawn
log-uniformly from 1 to 2048 by ``--seed``. torch's calls are ``functional.linear`` and the operators that its compiler
uses for frozen weights: oneDNN's with a packed weight, and MKL's in fp32. Calls take turns in every round; ratios are
taken within a round, against torch's call with the smallest median. Outputs are compared with float64 first: one with
more than twice the error of ``functional.linear`` ends the run.

    python benchmarks/cpu/prepacked.py --library FOLDER --threads 2 --out result.json

``--library`` is what KernelLibrary.load_for takes. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is
installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import machine
import torch
from ratios import fastest, geometric_mean, ratios, spread
from results_file import text
from shape_sets import FOLDER

import kernelwright.torch as ours
from kernelwright.dispatch import Dispatcher, KernelLibrary

BANDS = ((1, 7), (8, 15), (16, 63), (64, 255), (256, 1023), (1024, 2048))
LARGEST = 6.5e9  # multiplications of a product
ROUND_S = 0.02  # of each call


def main() -> None:
    """Measure, print a line for each layer and the means of bands of rows, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=48, help="layers for each dtype")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    dispatcher = Dispatcher(KernelLibrary.load_for("cpu", given.library))
    dispatcher.set_num_threads(given.threads)
    ours.use(dispatcher)
    rows = []
    with torch.no_grad():
        for name in given.dtypes:
            for m, n, k in drawn(given.seed, given.layers):
                rows.append({"dtype": name, "m": m, "n": n, "k": k, **measured(m, n, k, name, given.rounds)})
                print(rows[-1], flush=True)
    about = machine.describe(torch=torch.__version__)
    report = {"machine": about, "threads": given.threads, "seed": given.seed, "bands": means(rows)}
    print(json.dumps(report["bands"], indent=1))
    if given.out:
        given.out.write_text(text(report, rows))


def drawn(seed: int, count: int) -> Iterator[tuple[int, int, int]]:
    """M, N and K of layers, of which each band of rows has as many."""
    families = json.loads((FOLDER / "held_out.json").read_text())["families"]
    layers = sorted({(layer["n"], layer["k"]) for family in families for layer in family["layers"]})
    generator = random.Random(seed)
    for number in range(count):
        first, last = BANDS[number % len(BANDS)]
        m = round(math.exp(generator.uniform(math.log(first), math.log(last))))
        yield m, *generator.choice([(n, k) for n, k in layers if m * n * k <= LARGEST])


def measured(m: int, n: int, k: int, name: str, rounds: int) -> dict[str, Any]:
    """Ratios of torch's fastest call to ours with and without packing, and of these to each other."""
    dtype = getattr(torch, name)
    torch.manual_seed(m * n + k)
    x, weight, bias = (
        torch.randn(m, k, dtype=dtype),
        torch.randn(n, k, dtype=dtype) / k**0.5,
        torch.randn(n, dtype=dtype),
    )
    calls: dict[str, Any] = {"torch": lambda: torch.nn.functional.linear(x, weight, bias)}
    calls |= frozen(x, weight, bias)
    theirs = list(calls)
    calls["ours"] = lambda: ours.linear(x, weight, bias)
    calls["packed"] = calls["ours"]
    exact = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
    limit = 2 * float((calls["torch"]().double() - exact).abs().max()) + 1e-6
    times: dict[str, list[float]] = {one: [] for one in calls}
    for turn in range(rounds + 1):  # the first one packs weights and compares outputs
        for one in list(calls) if turn % 2 else list(reversed(calls)):
            if one in ("ours", "packed") and turn == 0:
                error = float((with_limit(one, calls[one]).double() - exact).abs().max())
                assert error <= limit, f"{one}: error {error}, allowed {limit}"
            seconds = timed(one, calls[one])
            if turn:
                times[one].append(seconds)
    best = fastest(times, theirs)
    against = {one: spread(ratios(times[best], times[one])) for one in ("ours", "packed")}
    medians = {one: spread([1e6 * value for value in values]) for one, values in times.items()}
    return {"us": medians, "best": best, **against, "gain": spread(ratios(times["ours"], times["packed"]))}


KEPT = 1 << 34


def with_limit(name: str, call: Any) -> torch.Tensor:
    """The call's result with weights packed if it is called so."""
    if (ours.prepacked().limit > 0) != (name == "packed"):
        ours.prepack(KEPT if name == "packed" else 0)
    result: torch.Tensor = call()
    return result


def timed(name: str, call: Any) -> float:
    """The least time of a call in a turn, in seconds, after a call that packs and warms."""
    with_limit(name, call)
    least, end = math.inf, time.perf_counter() + ROUND_S
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def frozen(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> dict[str, Any]:
    """torch's operators with packed weights, which its compiler calls where weights are frozen."""
    rows = x.shape[0]

    def one_dnn() -> Any:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")

    def mkl() -> Any:
        packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, rows)
        return lambda: torch.ops.mkl._mkl_linear(x, packed, weight, bias, rows)

    made: dict[str, Any] = {}
    for name, prepare in {"torch, oneDNN packed": one_dnn, "torch, MKL packed": mkl}.items():
        try:
            call = prepare()
            call()
        except RuntimeError as refused:  # of this dtype on this processor
            print(f"{name}: {refused}", file=sys.stderr)
        else:
            made[name] = call
    return made


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Geometric means and minima by dtype and band of rows."""
    made = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        for first, last in BANDS:
            group = [row for row in rows if row["dtype"] == dtype and first <= row["m"] <= last]
            for key in ("ours", "packed", "gain") if group else ():
                medians = [row[key]["median"] for row in group]
                mean = {"geometric_mean": round(geometric_mean(medians), 3), "worst": round(min(medians), 3)}
                made.append({"dtype": dtype, "rows": f"{first}-{last}", "what": key, **mean})
    return made


if __name__ == "__main__":
    main()
