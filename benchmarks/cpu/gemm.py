"""Square GEMMs against NumPy's fp32 matmul with as many threads, interleaved, as JSON.

Processors change their clock and share their caches with whatever else runs, so every round times NumPy and each kernel
in turn and the ratios are taken within the round. ``cpu`` figures count the processor time of the whole process instead
of the wall clock: on a busy machine they are the ones to compare, at one thread (waiting threads burn processor time).

    python -m tilewright.codegen build --arch x86_64_v4 --set essential --name gemm --trees trees.json --out out
    python benchmarks/cpu/gemm.py --library out/x86_64_v4/libgemm.so --threads 2 --out result.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / folder) for folder in ("benchmarks", "arch", "codegen")]

SIZES = (512, 1024, 2048, 4096)
Call = Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per size, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--match", nargs="+", default=["_rcr_"], help="only kernels whose name has one of these parts")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when NumPy loads

    import machine
    import ml_dtypes
    import numpy

    from tilewright.codegen.backends.cpu_harness import OK, CpuLibrary

    library = CpuLibrary(options.library)
    status, reason = library.check_device()
    if status != OK or library.set_num_threads(options.threads) != OK:
        parser.error(f"{options.library}: {reason or library.last_error}")
    kernels = [k for k in library if any(part in k.name for part in options.match)]
    kernels = [k for k in kernels if k.supports(k.problem(1, 1, 1, pads=(0, 0, 0)))[0] == OK]
    if not kernels:
        parser.error(f"{options.library} has no kernel for this processor that matches {' '.join(options.match)}")
    results = []
    for size in options.sizes:
        calls = _calls(kernels, size, {1: numpy.float32, 2: numpy.float16, 3: ml_dtypes.bfloat16})
        results.append({"size": size, **_rounds(calls, 2.0 * size**3, options.rounds)})
        _print(results[-1])
    versions = {"numpy": numpy.__version__, "blas": str(numpy.show_config("dicts")["Build Dependencies"]["blas"])}
    report = {"machine": machine.describe(**versions), "threads": options.threads, "results": results}
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


def _calls(kernels: Sequence[Any], size: int, dtypes: dict[int, Any]) -> dict[str, Call]:
    import numpy

    rng = numpy.random.default_rng(0)
    x, y = (rng.standard_normal((size, size), dtype=numpy.float32) for _ in range(2))
    out = numpy.empty_like(x)
    calls: dict[str, Call] = {"numpy": lambda: numpy.matmul(x, y, out=out)}
    for kernel in kernels:
        a, b = x.astype(dtypes[kernel.traits.dtype_a]), y.astype(dtypes[kernel.traits.dtype_b])
        d = numpy.empty((size, size), dtypes[kernel.traits.dtype_c])
        plan = kernel.plan(kernel.problem(size, size, size, pads=(0, 0, 0)))

        def call(plan: Any = plan, a: Any = a, b: Any = b, d: Any = d) -> int:
            return int(plan.launch(a.ctypes.data, b.ctypes.data, 0, d.ctypes.data))

        calls[kernel.name] = call
    return calls


def _rounds(calls: dict[str, Call], operations: float, rounds: int) -> dict[str, Any]:
    repeats = max(1, round(4e9 / operations))  # some 20 ms
    wall: dict[str, list[float]] = {name: [] for name in calls}
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(0.2)  # OpenBLAS's threads spin for some 100 ms after a product and would take a core
            _warm_up(calls[name])
            start, start_cpu = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                calls[name]()
            wall[name].append(operations * repeats / (time.perf_counter() - start) / 1e9)
            cpu[name].append(operations * repeats / (time.process_time() - start_cpu) / 1e9)
    return {
        name: {
            "gflops": _spread(wall[name]),
            "ratio_to_numpy": _spread([a / b for a, b in zip(wall[name], wall["numpy"], strict=True)]),
            "gflops_per_cpu_second": _spread(cpu[name]),
            "cpu_ratio_to_numpy": _spread([a / b for a, b in zip(cpu[name], cpu["numpy"], strict=True)]),
        }
        for name in calls
    }


def _warm_up(call: Call) -> None:
    """At least once and for 20 ms: clocks rise and threads find their cores."""
    end = time.perf_counter() + 0.02
    call()
    while time.perf_counter() < end:
        call()


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {name: round(f(values), 3) for name, f in (("median", statistics.median), ("min", min), ("max", max))}


def _print(result: dict[str, Any]) -> None:
    for name, figures in result.items():
        if name != "size":
            gflops, ratio, cpu = figures["gflops"], figures["ratio_to_numpy"], figures["cpu_ratio_to_numpy"]
            print(
                f"{result['size']:5} {gflops['median']:7.1f} GFLOP/s [{gflops['min']:.0f}, {gflops['max']:.0f}]"
                f"  {ratio['median']:.2f} x NumPy (by processor time {cpu['median']:.2f})  {name}",
                flush=True,
            )


if __name__ == "__main__":
    main()
