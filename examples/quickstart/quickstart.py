"""Dispatches a handful of GEMM problems and checks every element against float64.

    quickstart [--device cpu|cuda:0|sim:gfx942] [--library DIR] [--json]

The kernel library is a build target, found here as a resource of this package. The table or JSON goes to standard
output, everything else to standard error. Exit status 3: a result is wrong. On a device sim:…, an AMD GPU's kernels are
executed by a simulator: smaller problems, counts of executed instructions, and no speeds. Keys of the JSON:

    device, library    what ran: "cpu", "gemm for x86_64_v4: 16 kernels"
    simulated          whether the results are simulated
    repeats            timed calls behind each median; not there when simulated
    rows               one object per problem that was run
      m, n, k, dtype, layout    the problem
      kernel, tiling, why       the kernel's name, its blocks, and why it was chosen
      error                     largest share of its bound that an element's error uses; null if it is no number
      right                     whether every element is within its bound
      gflops, numpy_gflops      speeds of the kernel and of NumPy on this machine's CPU; 0 if there is nothing to do
      instructions, counts      when simulated, instead of speeds: executed instructions, each once per wave; by class
    unserved           for each problem that no kernel serves, the reason
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from kernelwright.dispatch import (
    Device,
    DeviceNameError,
    Dispatcher,
    GemmProblem,
    KernelEntry,
    KernelLibrary,
    KernelwrightError,
    NoKernelError,
    Selection,
)

REPEATS = 3
SETTLE_SECONDS = 0.15
# Columns of simulated results, and the simulator's names for those classes of instructions.
COUNTED = {"matrix": "matrix", "vector": "vector", "LDS": "lds", "global": "global", "barriers": "barrier"}
TIMES = "\N{MULTIPLICATION SIGN}"

PROBLEMS = (
    GemmProblem(1024, 1024, 1024, dtype="fp32", layout="rrr"),
    GemmProblem(768, 768, 768, dtype="bf16", layout="rcr"),
    GemmProblem(768, 768, 768, dtype="fp16", layout="rcr"),
    GemmProblem(517, 333, 1001, dtype="fp32", layout="ccr"),
    GemmProblem(640, 256, 96, dtype="bf16", layout="rcr"),
    GemmProblem(1, 1024, 512, dtype="fp16", layout="rcr"),
    GemmProblem(64, 0, 32, dtype="fp32", layout="rcr"),
)

# Of a few workgroups each; with tails in M, N and K.
SIMULATED_PROBLEMS = (
    GemmProblem(256, 256, 256, dtype="fp16", layout="rcr"),
    GemmProblem(200, 136, 328, dtype="fp16", layout="rcr"),
    GemmProblem(128, 256, 192, dtype="bf16", layout="rcr"),
    GemmProblem(72, 136, 96, dtype="bf16", layout="rrr"),
    GemmProblem(128, 64, 520, dtype="bf16", layout="crr"),
    GemmProblem(64, 0, 32, dtype="fp16", layout="rcr"),
)

DTYPES: dict[str, Any] = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
# Half a unit in the last place, relative to 1.
ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
SMALLEST = {"fp32": 2.0**-149, "fp16": 2.0**-24, "bf16": 2.0**-133}


@dataclass(frozen=True)
class Result:
    """One problem's result. ``error`` is the largest error of an element as a share of its bound: right if ≤ 1."""

    m: int
    n: int
    k: int
    dtype: str
    layout: str
    kernel: str
    tiling: str
    why: str
    error: float

    @property
    def right(self) -> bool:
        """Whether every element is within its bound."""
        return self.error <= 1.0  # false for NaN too


@dataclass(frozen=True)
class Row(Result):
    """A result with the speeds of the kernel and of NumPy."""

    gflops: float
    numpy_gflops: float


@dataclass(frozen=True)
class SimulatedRow(Result):
    """A result with the numbers of instructions that the simulator executed, in all and by class."""

    instructions: int
    counts: dict[str, int]


def main(arguments: list[str] | None = None) -> int:
    """Run the example; 0 if all is right, 1 if it cannot run, 2 for wrong usage, 3 for a wrong result."""
    options = _parse(arguments)
    try:
        device = Device.of(options.device)
        library = KernelLibrary.load_for(device, options.library or _resource(device))
        run = {"cpu": _on_cpu, "sim": _simulated}.get(device.kind, _on_gpu)
        dispatcher = Dispatcher([library], device=device)
        problems = SIMULATED_PROBLEMS if device.simulated else PROBLEMS
        rows, unserved = _run_all(problems, lambda problem: run(dispatcher, problem))
    except KernelwrightError as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 2 if isinstance(error, DeviceNameError) else 1
    _report(rows, unserved, library, device, as_json=options.json)
    if not rows:
        return 1
    return 0 if all(row.right for row in rows) else 3


def _run_all(problems: Sequence[GemmProblem], run: Callable[[GemmProblem], Result]) -> tuple[list[Result], list[str]]:
    """Rows, and for each problem that the library has no kernel for the reason."""
    rows, unserved = [], []
    for problem in problems:
        try:
            rows.append(run(problem))
        except NoKernelError as error:
            unserved.append(error.reason)
    return rows, unserved


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    first, _, rest = __doc__.partition("\n")
    details = rest.partition("[--json]")[2]
    parser = argparse.ArgumentParser(
        prog="quickstart", description=first, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, hip:N or sim:ARCH (default: cpu)")
    parser.add_argument("--library", type=Path, help="folder with <arch>/manifest.json (default: the packaged one)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


def _resource(device: Device) -> Traversable:
    if device.kind == "cpu":
        return _package().joinpath("cpu_gemm")
    folder = _package().joinpath(f"{device.arch}_gemm")
    if device.simulated and folder.is_dir():
        return folder
    built = f", or ./pants run examples:quickstart -- --device {device} to build one" if device.simulated else ""
    raise KernelwrightError(f"no library for {device} is packaged here; pass --library{built}")


def _package() -> Traversable:
    if __package__:
        return resources.files(__package__)
    return Path(__file__).parent  # run as a script


def _on_cpu(dispatcher: Dispatcher, problem: GemmProblem) -> Row:
    a, b, out = _operands(problem)
    plan = dispatcher.plan(problem)
    # NumPy multiplies bf16 and fp16 one element at a time, so it gets the same values in fp32.
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    ours, numpys = _timed(lambda: plan(a, b, out=out), lambda: wide_a @ wide_b)
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

    ours, numpys = _timed(launch, lambda: wide_a @ wide_b)
    error = _error(problem, a, b, device_out.float().cpu().numpy())
    return _row(problem, plan.selection, error, ours, numpys)


def _simulated(dispatcher: Dispatcher, problem: GemmProblem) -> SimulatedRow:
    a, b, out = _operands(problem)
    plan = dispatcher.plan(problem)
    plan(a, b, out=out)
    # Only needed here. A call may launch several kernels, or none if there is nothing to do.
    reports = importlib.import_module("kernelwright.simulator").last_reports()
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.counts)
    instructions = sum(report.instructions for report in reports)
    return SimulatedRow(*_described(problem, plan.selection), _error(problem, a, b, out), instructions, dict(counts))


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
    exact = a.astype(np.float64) @ b.astype(np.float64)
    growth = problem.k * ROUNDOFF["fp32"]
    # In fp32, which is twice as fast; it may come out smaller by that growth.
    magnitude = np.abs(a.astype(np.float32)) @ np.abs(b.astype(np.float32)) / (1 - growth)
    summed = growth / (1 - growth) * magnitude
    bound = summed + ROUNDOFF[problem.dtype_c] * (np.abs(exact) + summed) + SMALLEST[problem.dtype_c]
    return float(np.max(np.abs(out.astype(np.float64) - exact) / bound))


def _timed(ours: Callable[[], Any], reference: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of both, one after the other."""
    # OpenBLAS's threads spin for some 100 ms after a product and would take a core from whoever comes next.
    time.sleep(SETTLE_SECONDS)
    medians = []
    for call in (ours, reference):
        call()
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return medians[0], medians[1]


def _row(problem: GemmProblem, selection: Selection, error: float, ours: float, numpys: float) -> Row:
    return Row(*_described(problem, selection), error, problem.flops / ours / 1e9, problem.flops / numpys / 1e9)


def _described(problem: GemmProblem, selection: Selection) -> tuple[int, int, int, str, str, str, str, str]:
    """The members of every result before its error."""
    kernel = selection.kernel
    shape = problem.m, problem.n, problem.k
    return *shape, problem.dtype, problem.layout, kernel.name, _tiling(kernel), selection.reason


def _tiling(kernel: KernelEntry) -> str:
    tile, warp_tile = ("x".join(str(kernel.spec[part][extent]) for extent in "mnk") for part in ("tile", "warp_tile"))
    return f"{warp_tile} in {tile}"


def _report(
    rows: Sequence[Result], unserved: list[str], library: KernelLibrary, device: Device, *, as_json: bool
) -> None:
    if as_json:
        print(_json(rows, unserved, library, device))
        return
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
    title = f"{library}, {'simulated on' if device.simulated else 'on'} {device}"
    for reason in unserved:  # before the table, which ends with what ran
        print(f"quickstart: left out, for this library has no kernel for it: {reason}", file=sys.stderr)
    for line in _table(rows, title, width, colours=colours):
        print(line if unicode else line.replace(TIMES, "x").encode("ascii", "replace").decode())


def _json(rows: Sequence[Result], unserved: list[str], library: KernelLibrary, device: Device) -> str:
    fields = [
        {**asdict(row), "error": row.error if math.isfinite(row.error) else None, "right": row.right} for row in rows
    ]
    report: dict[str, Any] = {"device": str(device), "library": str(library), "simulated": device.simulated}
    if not device.simulated:
        report["repeats"] = REPEATS
    return json.dumps({**report, "rows": fields, "unserved": unserved}, indent=1, allow_nan=False)


def _table(rows: Sequence[Result], title: str, width: int, *, colours: bool) -> Iterator[str]:
    """Lines, one per problem. Where they do not fit into ``width`` columns, the reasons are left out."""
    simulated = any(isinstance(row, SimulatedRow) for row in rows)
    header = ("problem", "kernel", "why", "error", *((*COUNTED, "all") if simulated else ("GFLOP/s", "NumPy")))
    cells = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    whole = sum(widths) + 2 * (len(widths) - 1) <= width
    yield title
    yield ""
    for number, line in enumerate(cells):
        padded = [
            text.ljust(size) if i < 3 else text.rjust(size)
            for i, (text, size) in enumerate(zip(line, widths, strict=True))
        ]
        if colours and number > 0:
            padded[3] = f"\x1b[{32 if rows[number - 1].right else '1;31'}m{padded[3]}\x1b[0m"
        yield "  ".join(padded if whole else padded[:2] + padded[3:]).rstrip()
    yield ""
    yield "kernel: 4x16x1 in 64x64x64 is a warp tile (in registers) in a tile (in a cache or LDS), MxNxK"
    yield "error: largest share of its bound that an element uses, right up to 1 (against float64)"
    if simulated:
        yield "Simulated, not measured: executed instructions by class, each counted once per wave; no times."
    else:
        yield f"GFLOP/s: medians of {REPEATS}, NumPy right after, which gets bf16 and fp16 as fp32 on this CPU"
    if not whole:
        yield "why each kernel was chosen: in a wider terminal, or with --json"


def _cells(row: Result) -> tuple[str, ...]:
    common = (
        f"{row.dtype} {row.layout} {row.m}{TIMES}{row.n}{TIMES}{row.k}",
        row.tiling,
        row.why,
        f"{row.error:.3f}" if row.right else f"{row.error:.3g} WRONG",
    )
    if isinstance(row, SimulatedRow):
        return *common, *(str(row.counts.get(name, 0)) for name in COUNTED.values()), str(row.instructions)
    assert isinstance(row, Row)
    return *common, _speed(row.gflops), _speed(row.numpy_gflops)


def _speed(gflops: float) -> str:
    return f"{gflops:.1f}" if gflops else "-"


if __name__ == "__main__":
    sys.exit(main())
