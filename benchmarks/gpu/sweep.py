"""Times of every plain kernel of a library on the tuned shapes: what selection is fitted to (see fit.py).

``python benchmarks/gpu/sweep.py --library FOLDER --out sweep.json`` needs the folder of libgemm.so and manifest.json,
and $KERNELWRIGHT_LIBRARY. Launches are timed as in speed.py; per shape and kernel the median counts, in microseconds.
Split-K kernels are listed once per number of slices. A kernel whose output is not float64's is an error.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from references import plain_calls
from timing import (
    OUTPUT,
    Call,
    capture,
    environment,
    interleaved,
    operand_sets,
    output_errors,
    product,
    repeats,
)

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelEntry, KernelLibrary, KernelwrightError

sys.path.insert(0, str(Path(__file__).parents[1]))

from equality import error_limit, require_equal
from results_file import text
from shape_sets import TUNED, cases

Shape = tuple[int, int, int]
SLICES = (2, 3, 4, 6, 8)
NOT_PLAIN = ("num_d", "batched", "grouped", "preshuffle")


def plain(kernel: KernelEntry, dtype: str) -> bool:
    """Whether a kernel of the dtype computes only A·B, in layout rcr, with the usual result dtype."""
    spec = kernel.spec
    wanted = {"dtype_a": dtype, "dtype_b": dtype, "dtype_c": OUTPUT.get(dtype, dtype), "layout": "rcr"}
    return (
        all(spec[field] == value for field, value in wanted.items())
        and not any(spec.get(field) for field in NOT_PLAIN)
        and spec.get("activation", "none") == "none"
    )


def measure(library: KernelLibrary, dtype: str, shape: Shape, rounds: int) -> dict[str, Any]:
    """Microseconds of the fastest of torch's calls and of each kernel."""
    sets = operand_sets(*shape, dtype)
    theirs = plain_calls(sets, dtype)
    calls: dict[str, Call] = dict(theirs)
    for kernel in [kernel for kernel in library.kernels if plain(kernel, dtype)]:
        for slices in SLICES if kernel.spec.get("split_k") else (1,):
            call = launcher(library, kernel, dtype, shape, slices, sets)
            if call is not None:
                calls[kernel.name + (f"|split_k={slices}" if slices > 1 else "")] = call
    count = repeats(*shape, dtype, len(sets))
    graphs = {name: capture(call, count) for name, call in calls.items()}
    errors = output_errors(graphs, sets[0][2], product(*sets[0][:2]))
    require_equal(errors, error_limit(dtype, OUTPUT.get(dtype, dtype)), f"{dtype} {'x'.join(map(str, shape))}")
    times = interleaved(graphs, count, rounds, idle_s=0.004)
    medians = {name: round(statistics.median(values), 3) for name, values in times.items()}
    m, n, k = shape
    torch_us = min(medians.pop(name) for name in theirs)
    return {"dtype": dtype, "m": m, "n": n, "k": k, "torch_us": torch_us, "us": medians}


def launcher(
    library: KernelLibrary, kernel: KernelEntry, dtype: str, shape: Shape, slices: int, sets: list[Any]
) -> Call | None:
    """Launches the kernel; None if it does not serve the shape with this number of slices."""
    dispatcher = Dispatcher([library], device="cuda:0", selection=kernel.identity)
    problem = GemmProblem(*shape, dtype=dtype, dtype_c=OUTPUT.get(dtype, dtype), split_k=slices)
    try:
        plan = dispatcher.plan(problem)
    except KernelwrightError:
        return None
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

    def call(number: int, keep: tuple[Any, ...] = (dispatcher,)) -> None:
        a, b, out = sets[number % len(sets)]
        stream = torch.cuda.current_stream().cuda_stream
        plan(a.data_ptr(), b.data_ptr(), out=out.data_ptr(), stream=stream, workspace=workspace.data_ptr())

    return call


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libgemm.so and manifest.json")
    parser.add_argument("--dtypes", default="bf16,fp8,int8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    library, where = KernelLibrary.load(options.library), environment(options.library)
    shapes: list[dict[str, Any]] = []
    for dtype in options.dtypes.split(","):
        for shape in [(case.m, case.n, case.k) for case in cases(TUNED, dtype)]:
            shapes.append(measure(library, dtype, shape, options.rounds))
            torch.cuda.empty_cache()
            row = shapes[-1]
            best = min(row["us"], key=row["us"].__getitem__)
            ratio = row["torch_us"] / row["us"][best]
            print(f"{dtype} {'x'.join(map(str, shape))}: {ratio:.3f} of torch by {best}", flush=True)
            options.out.write_text(text({"environment": where}, shapes, "shapes"))


if __name__ == "__main__":
    _main()
