"""24 GEMM shapes, kernels chosen by the dispatcher, against NumPy, torch and our own fp32, interleaved, as JSON.

Three kinds of reference: NumPy's fp32 matmul (OpenBLAS) for fp32; torch's bf16 and int8 matmul (oneDNN) where torch is
installed; our own fp32 for fp16, of which torch has no fast product. Processors change their clock and share their
caches with whatever else runs, so the calls take turns in every round; a round counts the least time of each call,
ratios are taken within a round, and medians over the rounds are reported, with the smallest and the largest. Every
library gets as many threads. All calls are made from Python with memory that exists already:
``numpy.matmul(a, b, out=…)``, ``torch.matmul(a, b, out=…)``, ``plan.bind(a, b, out=…)()``, so that the smallest shapes
compare whole calls.

    ./pants package kernels/gemm:cpu_gemm
    python benchmarks/cpu/gemm.py --library dist/kernels/gemm/cpu_gemm --threads 2 --out result.json

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / folder) for folder in ("benchmarks", "bindings")]

# m, n, k: small ones, squares, an odd one, rows and columns of transformers, thin ones.
SHAPES = (
    *((8, 8, 8), (16, 16, 16), (24, 48, 40), (32, 32, 32), (48, 48, 48), (64, 64, 64)),
    *((128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)),
    *((127, 129, 131), (1000, 1001, 999)),
    *((1, 1024, 1024), (1, 4096, 4096), (4, 4096, 4096), (16, 4096, 4096), (128, 4096, 1024)),
    *((1024, 1, 1024), (4096, 1, 4096), (4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (512, 2048, 512)),
)
SMALL = 64  # all extents at most this
Call = Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per shape and the geometric means, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--layout", choices=("rrr", "rcr"), default="rcr")
    parser.add_argument("--dtypes", nargs="+", default=["fp32", "bf16", "fp16", "int8"])
    parser.add_argument("--largest", type=float, default=math.inf, help="leave out shapes of more multiplications")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy and torch load
        os.environ[name] = str(options.threads)

    import machine
    import numpy

    from kernelwright.dispatch import Dispatcher, KernelLibrary

    dispatcher = Dispatcher(KernelLibrary.load_for("cpu", options.library))
    dispatcher.set_num_threads(options.threads)
    torch = _torch(options.threads)
    results = []
    for shape in SHAPES:
        if math.prod(shape) <= options.largest:
            kernels: dict[str, str] = {}
            calls = _calls(dispatcher, torch, shape, options.layout, options.dtypes, kernels)
            seconds = _seconds(calls, math.prod(shape), options.rounds)
            results.append({"shape": shape, "kernels": kernels, **_figures(seconds, math.prod(shape))})
            _print(results[-1])
    means = _means(results)
    print(json.dumps(means, indent=1))
    blas = "{name} {version}".format(**numpy.show_config("dicts")["Build Dependencies"]["blas"])
    versions = {"numpy": numpy.__version__, "blas": blas, "torch": torch.__version__ if torch else "not installed"}
    report = {"machine": machine.describe(**versions), "threads": options.threads, "layout": options.layout}
    if options.out:
        head = json.dumps({**report, "geometric_means": means}, indent=1).removesuffix("\n}")
        rows = ",\n  ".join(map(json.dumps, results))  # a line for each shape
        options.out.write_text(f'{head},\n "results": [\n  {rows}\n ]\n}}\n')


def _torch(threads: int) -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    return torch


def _calls(
    dispatcher: Any,
    torch: Any,
    shape: tuple[int, int, int],
    layout: str,
    dtypes: Sequence[str],
    kernels: dict[str, str],
) -> dict[str, Call]:
    """Of every library; fills in the names of the chosen kernels."""
    import numpy

    from kernelwright.dispatch import GemmProblem
    from kernelwright.dispatch.arrays.dtypes import numpy_dtype

    m, n, k = shape
    rng = numpy.random.default_rng(0)
    a, b = rng.integers(-9, 10, (m, k)), rng.integers(-9, 10, (k, n))

    def of_type(values: Any, dtype: str, order: str) -> Any:
        return numpy.array(values, numpy_dtype(dtype), order="C" if order == "r" else "F")

    def problem(dtype: str) -> Any:
        output, sums = ("int32", "int32") if dtype == "int8" else (dtype, "fp32")
        types = {"dtype_a": dtype, "dtype_b": dtype, "dtype_c": output, "dtype_acc": sums}
        return GemmProblem(m, n, k, layout=layout, **types)

    def numpy_call() -> Call:
        x, y, out = of_type(a, "fp32", "r"), of_type(b, "fp32", layout[1]), numpy.empty((m, n), numpy.float32)
        return lambda: numpy.matmul(x, y, out=out)

    def our_call(dtype: str) -> Call:
        output = "int32" if dtype == "int8" else dtype
        plan = dispatcher.plan(problem(dtype))
        kernels[dtype] = plan.kernel.name
        out = numpy.empty((m, n), numpy_dtype(output))
        call: Call = plan.bind(of_type(a, dtype, "r"), of_type(b, dtype, layout[1]), out=out)
        return call

    def torch_call(dtype: str) -> Call:
        kind = {"bf16": torch.bfloat16, "int8": torch.int8}[dtype]
        x = torch.from_numpy(numpy.ascontiguousarray(a)).to(kind)
        y = torch.from_numpy(numpy.ascontiguousarray(b.T)).to(kind).T
        y = y if layout[1] == "c" else y.contiguous()
        if dtype == "int8":
            return lambda: torch._int_mm(x, y)
        out = torch.empty((m, n), dtype=kind)
        return lambda: torch.matmul(x, y, out=out)

    calls = {"numpy fp32": numpy_call()}
    for dtype in dtypes:
        if dtype == "int8" and not _serves(dispatcher, problem(dtype)):
            continue
        calls[dtype] = our_call(dtype)
        if torch and dtype in ("bf16", "int8"):
            calls[f"torch {dtype}"] = torch_call(dtype)
    return calls


def _serves(dispatcher: Any, problem: Any) -> bool:
    return any(kernel.supported for kernel in dispatcher.explain(problem))


def _seconds(calls: dict[str, Call], work: int, rounds: int) -> dict[str, list[float]]:
    """The least of one call in each round; calls take turns."""
    repeats = max(1, min(2000, round(2e7 / work)))
    least: dict[str, list[float]] = {name: [math.inf] * rounds for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(0.15)  # OpenBLAS's threads spin for some 100 ms after a product and would take a core
            call, end = calls[name], time.perf_counter() + 0.03
            call()
            while True:
                start = time.perf_counter()
                for _ in range(repeats):
                    call()
                now = time.perf_counter()
                least[name][turn] = min(least[name][turn], (now - start) / repeats)
                if now > end:
                    break
    return least


REFERENCES = {"fp32": "numpy fp32", "bf16": "torch bf16", "int8": "torch int8", "fp16": "fp32"}


def _figures(seconds: dict[str, list[float]], work: int) -> dict[str, Any]:
    ratios = {
        dtype: [theirs / ours for theirs, ours in zip(seconds[reference], seconds[dtype], strict=True)]
        for dtype, reference in REFERENCES.items()
        if dtype in seconds and reference in seconds
    }
    return {
        "microseconds": {name: _spread([value * 1e6 for value in values]) for name, values in seconds.items()},
        "gflops": {name: round(2e-9 * work / statistics.median(values), 1) for name, values in seconds.items()},
        "ratios": {dtype: round(statistics.median(values), 3) for dtype, values in ratios.items()},
        "ratio_spread": {dtype: _spread(values) for dtype, values in ratios.items()},
    }


def _spread(values: Sequence[float]) -> list[float]:
    """Median, smallest, largest."""
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def _means(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means of the ratios, and of fp32 over the small shapes alone."""

    def mean(ratios: Sequence[float]) -> float | None:
        return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3) if ratios else None

    found: dict[str, Any] = {}
    for dtype, reference in REFERENCES.items():
        found[f"{dtype} to {reference}"] = mean([r["ratios"][dtype] for r in results if dtype in r["ratios"]])
    small = [r["ratios"]["fp32"] for r in results if max(r["shape"]) <= SMALL and "fp32" in r["ratios"]]
    return {**found, "fp32 to numpy fp32, small": mean(small)}


def _print(result: dict[str, Any]) -> None:
    rates = "  ".join(f"{name} {rate:.1f}" for name, rate in result["gflops"].items())
    print(f"{'x'.join(map(str, result['shape'])):>16} GFLOP/s {rates}; ratios {result['ratios']}", flush=True)


if __name__ == "__main__":
    main()
