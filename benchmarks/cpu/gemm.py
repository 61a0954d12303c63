"""GEMM shapes, kernels chosen by the dispatcher, against NumPy, torch and our own fp32, interleaved, as JSON.

``--shapes tuned`` are the 24 shapes that the kernels were tuned on, ``held-out`` the linear layers of
benchmarks/shapes/held_out.json, on which nothing was tuned.

Three kinds of reference: NumPy's fp32 matmul (OpenBLAS) for fp32; torch's bf16 and int8 matmul (oneDNN) where torch is
installed; our own fp32 for fp16, of which torch has no fast product. Processors change their clock and share their
caches with whatever else runs, so the calls take turns in every round; a round counts the least time of each call,
ratios are taken within a round, and medians over the rounds are reported, with the smallest and the largest. Every
library gets as many threads.

All calls are made from Python and write into memory that exists already. Whole calls are compared with whole calls:
``dispatcher.gemm(a, b, out=out)`` with ``numpy.matmul(a, b, out=out)``, ``torch.matmul`` or ``torch._int_mm`` with
``out=``. ``plan.bind(a, b, out=out)()`` is timed beside them as "bound": it repeats one product whose arrays were
checked before, which the references cannot do. Every output is compared with the exact integer product first; a wrong
one ends the run.

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
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from cpu.figures import figures, geometric_means
from equality import error_limit, require_equal
from results_file import text
from shape_sets import HELD_OUT, SETS, TUNED, cases

# m, n, k of the shapes that kernels were tuned on: small, square, odd, rows and columns of transformers, thin.
TUNED_SHAPES = (
    *((8, 8, 8), (16, 16, 16), (24, 48, 40), (32, 32, 32), (48, 48, 48), (64, 64, 64)),
    *((128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)),
    *((127, 129, 131), (1000, 1001, 999)),
    *((1, 1024, 1024), (1, 4096, 4096), (4, 4096, 4096), (16, 4096, 4096), (128, 4096, 1024)),
    *((1024, 1, 1024), (4096, 1, 4096), (4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (512, 2048, 512)),
)
OUTPUT = {"int8": "int32"}  # else the operands' dtype
Call = Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per shape and the geometric means, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--layout", choices=("rrr", "rcr"), default="rcr")
    parser.add_argument("--dtypes", nargs="+", default=["fp32", "bf16", "fp16", "int8"])
    parser.add_argument("--shapes", choices=SETS, default=TUNED)
    parser.add_argument("--largest", type=float, default=math.inf, help="leave out shapes of more multiplications")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # read when NumPy and torch are loaded
        os.environ[name] = str(options.threads)

    import machine
    import numpy

    from kernelwright.dispatch import Dispatcher, KernelLibrary

    dispatcher = Dispatcher(KernelLibrary.load_for("cpu", options.library))
    dispatcher.set_num_threads(options.threads)
    torch = _torch(options.threads)
    results = []
    for shape in _shapes(options.shapes):
        if math.prod(shape) <= options.largest:
            kernels: dict[str, str] = {}
            calls = _calls(dispatcher, torch, shape, options.layout, options.dtypes, kernels)
            _check(calls, shape)
            seconds = _seconds({name: call for name, (call, _) in calls.items()}, math.prod(shape), options.rounds)
            results.append({"shape": shape, "kernels": kernels, **figures(seconds, math.prod(shape))})
            _print(results[-1])
    means = geometric_means(results)
    print(json.dumps(means, indent=1))
    blas = "{name} {version}".format(**numpy.show_config("dicts")["Build Dependencies"]["blas"])
    versions = {"numpy": numpy.__version__, "blas": blas, "torch": torch.__version__ if torch else "not installed"}
    asked = {"threads": options.threads, "layout": options.layout, "shapes": options.shapes}
    report = {"machine": machine.describe(**versions), **asked}
    if options.out:
        options.out.write_text(text({**report, "geometric_means": means}, results))


def _shapes(name: str) -> Sequence[tuple[int, int, int]]:
    """M, N and K of each shape in a set, each once."""
    if name == TUNED:
        return TUNED_SHAPES
    return list(dict.fromkeys((case.m, case.n, case.k) for case in cases(HELD_OUT, "bf16")))


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
) -> dict[str, tuple[Call, Any]]:
    """Calls of every library by name, with their output as a NumPy array; fills in the chosen kernels."""
    import numpy

    from kernelwright.dispatch import GemmProblem

    m, n, k = shape
    a, b = _operands(shape)

    def of_type(values: Any, dtype: str, order: str) -> Any:
        return numpy.array(values, _numpy_dtype(dtype), order="C" if order == "r" else "F")

    def problem(dtype: str) -> Any:
        sums = "int32" if dtype == "int8" else "fp32"
        types = {"dtype_a": dtype, "dtype_b": dtype, "dtype_c": OUTPUT.get(dtype, dtype), "dtype_acc": sums}
        return GemmProblem(m, n, k, layout=layout, **types)

    def numpy_call() -> tuple[Call, Any]:
        x, y, out = of_type(a, "fp32", "r"), of_type(b, "fp32", layout[1]), numpy.empty((m, n), numpy.float32)
        return lambda: numpy.matmul(x, y, out=out), out

    def our_calls(dtype: str) -> dict[str, tuple[Call, Any]]:
        plan = dispatcher.plan(problem(dtype))
        kernels[dtype] = plan.kernel.name
        x, y = of_type(a, dtype, "r"), of_type(b, dtype, layout[1])
        out = numpy.empty((m, n), _numpy_dtype(OUTPUT.get(dtype, dtype)))
        whole, bound = (lambda: dispatcher.gemm(x, y, out=out)), plan.bind(x, y, out=out)
        return {dtype: (whole, out), f"{dtype} bound": (bound, out)}

    def torch_call(dtype: str) -> tuple[Call, Any]:
        kind = {"bf16": torch.bfloat16, "int8": torch.int8}[dtype]
        x = torch.from_numpy(numpy.ascontiguousarray(a)).to(kind)
        y = torch.from_numpy(numpy.ascontiguousarray(b.T)).to(kind).T
        y = y if layout[1] == "c" else y.contiguous()
        out = torch.empty((m, n), dtype=torch.int32 if dtype == "int8" else kind)
        product = torch._int_mm if dtype == "int8" else torch.matmul
        product(x, y, out=out)
        return lambda: product(x, y, out=out), out

    calls = {"numpy fp32": numpy_call()}
    for dtype in dtypes:
        if dtype == "int8" and not _serves(dispatcher, problem(dtype)):
            continue
        calls.update(our_calls(dtype))
        if torch and dtype in ("bf16", "int8"):
            try:
                calls[f"torch {dtype}"] = torch_call(dtype)
            except (RuntimeError, TypeError) as error:  # older versions of _int_mm have no out=
                print(f"torch {dtype} is not compared: {error}", file=sys.stderr)
    return calls


def _operands(shape: tuple[int, int, int]) -> tuple[Any, Any]:
    """A and B of small integers, exact in every dtype; the same on every call."""
    import numpy

    m, n, k = shape
    rng = numpy.random.default_rng(0)
    return rng.integers(-9, 10, (m, k)), rng.integers(-9, 10, (k, n))


def _numpy_dtype(dtype: str) -> Any:
    import ml_dtypes
    import numpy

    kinds = {"fp32": numpy.float32, "fp16": numpy.float16, "int8": numpy.int8, "int32": numpy.int32}
    return numpy.dtype(ml_dtypes.bfloat16 if dtype == "bf16" else kinds[dtype])


def _check(calls: dict[str, tuple[Call, Any]], shape: tuple[int, int, int]) -> None:
    """Raise UnequalOutputsError unless every call writes the product of _operands, rounded to its output dtype."""
    import numpy

    a, b = _operands(shape)
    expected = a.astype(numpy.float64) @ b.astype(numpy.float64)
    for name, (call, out) in calls.items():
        dtype = name.split()[1] if name.startswith(("numpy ", "torch ")) else name.split()[0]
        out[:] = -(2**31) if dtype == "int8" else math.nan  # neither is a product of these operands
        call()
        wide = out.double().numpy() if hasattr(out, "double") else out.astype(numpy.float64)
        error = float(numpy.linalg.norm(wide - expected) / numpy.linalg.norm(expected))
        limit = error_limit(dtype, OUTPUT.get(dtype, dtype))
        require_equal({name: error}, limit, "x".join(map(str, shape)))


def _serves(dispatcher: Any, problem: Any) -> bool:
    return any(kernel.supported for kernel in dispatcher.explain(problem))


def _seconds(calls: dict[str, Call], work: int, rounds: int) -> dict[str, list[float]]:
    """The minimum time of a call in each round; calls take turns."""
    repeats = max(1, min(2000, round(2e7 / work)))
    least: dict[str, list[float]] = {name: [math.inf] * rounds for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(0.15)  # OpenBLAS's threads spin for about 100 ms after a product and would occupy a core
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


def _print(result: dict[str, Any]) -> None:
    rates = "  ".join(f"{name} {rate:.1f}" for name, rate in result["gflops"].items())
    print(f"{'x'.join(map(str, result['shape'])):>16} GFLOP/s {rates}; ratios {result['ratios']}", flush=True)


if __name__ == "__main__":
    main()
