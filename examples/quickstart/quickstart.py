"""Dispatches a handful of GEMM problems and checks every element against float64.

    quickstart [--device cpu|cuda:0] [--library DIR] [--json]

The kernel library is a build target, found here as a resource of this package. Exit status 3: a result is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.dispatch import (
    Device,
    Dispatcher,
    GemmProblem,
    KernelEntry,
    KernelLibrary,
    NoKernelError,
    Selection,
    TilewrightError,
)

REPEATS = 5

PROBLEMS = (
    GemmProblem(1024, 1024, 1024, dtype="fp32", layout="rrr"),
    GemmProblem(1024, 1024, 1024, dtype="bf16", layout="rcr"),
    GemmProblem(1024, 1024, 1024, dtype="fp16", layout="rcr"),
    GemmProblem(517, 333, 1001, dtype="fp32", layout="ccr"),
    GemmProblem(640, 256, 96, dtype="bf16", layout="rcr"),
    GemmProblem(1, 1024, 512, dtype="fp16", layout="rcr"),
    GemmProblem(64, 0, 32, dtype="fp32", layout="rcr"),
)

DTYPES: dict[str, Any] = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
# Half a unit in the last place, relative to 1.
ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
SMALLEST = {"fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}


@dataclass(frozen=True)
class Row:
    """One problem's result. ``error`` is the largest error of an element as a share of its bound: right if ≤ 1."""

    problem: str
    kernel: str
    tiling: str
    why: str
    error: float
    gflops: float
    numpy_gflops: float

    @property
    def right(self) -> bool:
        """Whether every element is within its bound."""
        return self.error <= 1.0  # false for NaN too


def main(arguments: list[str] | None = None) -> int:
    """Run the example; 0 if all is right, 1 if it cannot run, 2 for wrong usage, 3 for a wrong result."""
    options = _parse(arguments)
    try:
        device = Device.of(options.device)
        library = KernelLibrary.load_for(device, options.library or _resource(device))
        run = _on_gpu if device.kind != "cpu" else _on_cpu
        dispatcher = Dispatcher([library], device=device)
        rows, unserved = _run_all(lambda problem: run(dispatcher, problem))
    except TilewrightError as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 1
    _report(rows, unserved, library, device, as_json=options.json)
    if not rows:
        return 1
    return 0 if all(row.right for row in rows) else 3


def _run_all(run: Callable[[GemmProblem], Row]) -> tuple[list[Row], list[str]]:
    """Rows, and for each problem that the library has no kernel for the reason."""
    rows, unserved = [], []
    for problem in PROBLEMS:
        try:
            rows.append(run(problem))
        except NoKernelError as error:
            unserved.append(str(error))
    return rows, unserved


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="quickstart", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N or hip:N (default: cpu)")
    parser.add_argument("--library", type=Path, help="folder with <arch>/manifest.json (default: the packaged one)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


def _resource(device: Device) -> Traversable:
    if device.kind != "cpu":
        raise TilewrightError(f"only a CPU library is packaged here; pass --library for {device}")
    return _package().joinpath("cpu_gemm")


def _package() -> Traversable:
    if __package__:
        return resources.files(__package__)
    return Path(__file__).parent  # run as a script


def _on_cpu(dispatcher: Dispatcher, problem: GemmProblem) -> Row:
    a, b, out = _operands(problem)
    plan = dispatcher.plan(problem)
    # NumPy multiplies bf16 and fp16 one element at a time, so it gets the same values in fp32.
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    ours, numpys = _interleaved(lambda: plan(a, b, out=out), lambda: wide_a @ wide_b)
    error = _error(problem, a, b, out)
    return _row(problem, plan.selection, error, ours, numpys)


def _on_gpu(dispatcher: Dispatcher, problem: GemmProblem) -> Row:
    torch = importlib.import_module("torch")  # only needed here
    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    a, b, out = _operands(problem)
    where = dispatcher.device.name.replace("hip", "cuda")

    def move(array: np.ndarray[Any, Any]) -> Any:  # through fp32, which both sides know; strides are kept
        turned = not array.flags.c_contiguous
        moved = torch.from_numpy((array.T if turned else array).astype(np.float32)).to(where, kinds[problem.dtype])
        return moved.t() if turned else moved

    device_a, device_b, device_out = move(a), move(b), move(out)
    plan = dispatcher.plan(problem)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)

    def launch() -> None:
        plan(device_a, device_b, out=device_out)
        torch.cuda.synchronize()

    ours, numpys = _interleaved(launch, lambda: wide_a @ wide_b)
    error = _error(problem, a, b, device_out.float().cpu().numpy())
    return _row(problem, plan.selection, error, ours, numpys)


def _operands(problem: GemmProblem) -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(problem.m * 7919 + problem.k)
    dtype = DTYPES[problem.dtype]

    def matrix(rows: int, columns: int, layout: str) -> np.ndarray[Any, Any]:
        values = rng.standard_normal((rows, columns), dtype=np.float32).astype(dtype)
        return np.asarray(values, order="C" if layout == "r" else "F")

    return (
        matrix(problem.m, problem.k, problem.layout[0]),
        matrix(problem.k, problem.n, problem.layout[1]),
        np.zeros((problem.m, problem.n), dtype),
    )


def _error(problem: GemmProblem, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> float:
    """The largest |out - exact| / bound.

    Summing k products in fp32 in any order errs by at most k·u/(1-k·u)·(|A||B|), one rounding to the result's type by
    half a unit in its last place (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5).
    """
    if out.size == 0:
        return 0.0
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    exact = exact_a @ exact_b
    magnitude = np.abs(exact_a) @ np.abs(exact_b)
    growth = problem.k * ROUNDOFF["fp32"]
    summed = growth / (1 - growth) * magnitude
    bound = summed + ROUNDOFF[problem.dtype_c] * (np.abs(exact) + summed) + SMALLEST[problem.dtype_c]
    return float(np.max(np.abs(out.astype(np.float64) - exact) / bound))


def _interleaved(ours: Callable[[], Any], reference: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of both, taken in turn so that a change of clock or load meets both alike."""
    samples: tuple[list[float], list[float]] = ([], [])
    for call in (ours, reference):
        call()
    for _ in range(REPEATS):
        for call, times in zip((ours, reference), samples, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return statistics.median(samples[0]), statistics.median(samples[1])


def _row(problem: GemmProblem, selection: Selection, error: float, ours: float, numpys: float) -> Row:
    return Row(
        str(problem),
        selection.kernel.name,
        _tiling(selection.kernel),
        selection.reason,
        error,
        problem.flops / ours / 1e9,
        problem.flops / numpys / 1e9,
    )


def _tiling(kernel: KernelEntry) -> str:
    tile, warp_tile = ("x".join(str(kernel.spec[part][extent]) for extent in "mnk") for part in ("tile", "warp_tile"))
    return f"tile {tile}, warp tile {warp_tile}"


def _report(rows: list[Row], unserved: list[str], library: KernelLibrary, device: Device, *, as_json: bool) -> None:
    if as_json:
        fields = [{**asdict(row), "right": row.right} for row in rows]
        print(
            json.dumps({"device": str(device), "library": str(library), "rows": fields, "unserved": unserved}, indent=1)
        )
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()  # honours NO_COLOR
    table = Table(
        title=f"{library}, on {device}",
        caption=f"Error: largest share of its bound that an element uses. Speeds: medians of {REPEATS}, interleaved, "
        "this machine's CPU for NumPy, which gets the same values in fp32 (it has no fast bf16 or fp16).",
    )
    for heading in ("problem", "kernel, and why"):
        table.add_column(heading)
    for heading in ("error", "GFLOP/s", "NumPy"):
        table.add_column(heading, justify="right")
    for row in rows:
        verdict = f"[green]{row.error:.3f}[/]" if row.right else f"[bold red]{row.error:.3g} WRONG[/]"
        why = row.why.partition(", next")[0].partition(", tied")[0]  # the runner-up is in the JSON
        table.add_row(
            row.problem, f"{row.tiling}\n[dim]{why}[/]", verdict, _speed(row.gflops), _speed(row.numpy_gflops)
        )
    console.print(table)
    for reason in unserved:
        console.print(f"not run: {reason}", markup=False)


def _speed(gflops: float) -> str:
    return f"{gflops:.1f}" if gflops else "-"


if __name__ == "__main__":
    sys.exit(main())
