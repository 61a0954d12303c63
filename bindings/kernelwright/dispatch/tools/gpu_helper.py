"""Runs one GEMM and prints what happened as one JSON document.

    gpu_helper M N K [--validate] [--device cpu|cuda:0|hip:0|sim:gfx942] [--library DIR]
                     [--datatype fp16] [--layout rcr] [--kernel NAME]

Standard output holds one JSON object and nothing else, standard error the progress. Keys of the object:

    problem       {"M", "N", "K", "datatype", "layout"}
    device        what ran, such as "cpu" or "sim:gfx942"; the latter is simulated, not measured
    kernel        {"name", "identity", "arch", "library"} of the kernel that ran
    selected_kernel   its name; "reason" says why it was chosen
    execution     {"time_ms", "tflops", "flops", "repeats"}: the average of the repeats after one warm-up, without
                  copies; on simulated devices {"flops", "instructions"}, the number of executed instructions
    validation    with --validate: {"accuracy" (percent), "max_error", "correct_elements", "total_elements"}, every
                  element compared with a product in double precision; right is what K products and sums in fp32 in any
                  order, and one rounding, may give (int8: exactly the product; fp8: sums that lose all but 14 bits
                  after each 32 of K, as NVIDIA's matrix units sum)
    status        "success", "wrong result" or "error"; then "error" says what is the matter

Exit status: 0 success; 1 it could not run; 2 wrong usage; 3 a result is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import DeviceNameError, KernelwrightError, ProblemError
from kernelwright.dispatch.dispatcher import Dispatcher
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.operations.gemm.plan import Plan
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.shared import RESULT

SECONDS, REPEATS = 0.1, 10  # whichever ends the measurement first
EXIT_FAILED, EXIT_BAD_INPUT, EXIT_WRONG = 1, 2, 3
_DTYPES = ("fp32", "fp16", "bf16", "fp8", "int8")
# Half a unit in the last place, relative to 1, and the smallest number.
_ROUNDING = {"fp32": (2.0**-24, 2.0**-149), "fp16": (2.0**-11, 2.0**-24), "bf16": (2.0**-8, 2.0**-133)}
# wgmma cuts sums of 8-bit products to 14 bits after each 32 of K (seen on an H200).
_FP8_STEP, _FP8_CUT = 32, 2.0**-13

_Array = np.ndarray[Any, Any]


def main(
    arguments: Sequence[str] | None = None, packaged: Callable[[Device], Traversable | Path | None] | None = None
) -> int:
    """Run the program. Returns the exit status. ``packaged`` maps a device to a library folder that comes with it."""
    options = _parse(arguments)
    report: dict[str, Any] = {
        "problem": {
            "M": options.m, "N": options.n, "K": options.k, "datatype": options.datatype, "layout": options.layout,
        },
        "device": options.device,
    }  # fmt: skip
    try:
        code = _run(options, report, packaged)
    except KernelwrightError as error:
        report.update(status="error", error=str(error))
        print(f"gpu_helper: {error}", file=sys.stderr)
        code = EXIT_BAD_INPUT if isinstance(error, (DeviceNameError, ProblemError)) else EXIT_FAILED
    print(json.dumps(report, indent=2, allow_nan=False))
    return code


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    first, _, rest = (__doc__ or "").partition("\n")
    details = rest[rest.index("Standard output") :]
    parser = argparse.ArgumentParser(
        prog="gpu_helper", description=first, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for extent in "mnk":
        parser.add_argument(extent, metavar=extent.upper(), type=_extent)
    parser.add_argument("--validate", action="store_true", help="compare every element with double precision")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, hip:N or sim:ARCH (default: cpu)")
    parser.add_argument("--library", type=Path, help="folder with <arch>/manifest.json (default: installed wheels)")
    parser.add_argument("--datatype", default="fp16", choices=_DTYPES, help="of A and B (default: fp16)")
    parser.add_argument("--layout", default="rcr", help="row- or column-major of A, B and C (default: rcr)")
    parser.add_argument("--kernel", default="analytic", metavar="NAME", help="run this one (default: the fastest)")
    return parser.parse_args(arguments)


def _extent(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no size; allowed: 0, 1, 2, …")
    return int(text)


def _run(
    options: argparse.Namespace,
    report: dict[str, Any],
    packaged: Callable[[Device], Traversable | Path | None] | None,
) -> int:
    device = Device.of(options.device)
    folder = options.library or (packaged(device) if packaged else None)
    library = KernelLibrary.load_for(device, folder) if folder else KernelLibrary.load_installed(device, "gemm")
    print(f"gpu_helper: {library} on {device}", file=sys.stderr)
    problem = GemmProblem(
        options.m, options.n, options.k, dtype=options.datatype, dtype_c=_result(options.datatype, library),
        layout=options.layout,
    )  # fmt: skip
    plan = Dispatcher([library], device=device, selection=options.kernel).plan(problem)
    kernel = plan.selection.kernel
    report["kernel"] = {
        "name": kernel.name, "identity": kernel.identity, "arch": library.manifest.arch, "library": library.name,
    }  # fmt: skip
    report["selected_kernel"], report["reason"] = kernel.name, plan.selection.reason
    print(f"gpu_helper: running {kernel.name}", file=sys.stderr)
    a, b, out = _operands(problem, library.fp8_fnuz)
    run = {"cpu": _on_cpu, "sim": _simulated}.get(device.kind, _on_gpu)
    report["execution"], result = run(plan, a, b, out)
    report["execution"]["flops"] = problem.flops
    report["status"] = "success"
    if not options.validate:
        return 0
    print("gpu_helper: validating", file=sys.stderr)
    report["validation"] = _validated(problem, a, b, result)
    if report["validation"]["correct_elements"] == report["validation"]["total_elements"]:
        return 0
    report["status"] = "wrong result"
    return EXIT_WRONG


def _result(datatype: str, library: KernelLibrary) -> str:
    """Result dtype of the library's kernels for 8-bit floats, which have several; the usual one for other dtypes."""
    if datatype != "fp8":
        return RESULT[datatype]
    made = (str(kernel.spec["dtype_c"]) for kernel in library.kernels if kernel.spec.get("dtype_a") == datatype)
    return next(made, RESULT[datatype])


def _operands(problem: GemmProblem, fnuz: bool) -> tuple[_Array, _Array, _Array]:
    rng = np.random.default_rng(problem.m * 7919 + problem.n * 31 + problem.k)

    def matrix(rows: int, columns: int, order: str) -> _Array:
        if problem.dtype == "int8":
            values = rng.integers(-127, 128, (rows, columns), np.int8)
        else:
            values = rng.standard_normal((rows, columns), np.float32).astype(dtypes.numpy_dtype(problem.dtype, fnuz))
        return np.asarray(values, order="C" if order == "r" else "F")

    kind = dtypes.numpy_dtype(problem.dtype_c)
    unwritten = kind.type(-1) if kind.kind == "i" else np.float32(np.nan)  # so that unwritten elements show
    out = np.full((problem.m, problem.n), unwritten, kind, order="C" if problem.layout[2] == "r" else "F")
    return matrix(problem.m, problem.k, problem.layout[0]), matrix(problem.k, problem.n, problem.layout[1]), out


def _timed(problem: GemmProblem, launch: Callable[[], None]) -> dict[str, Any]:
    launch()
    repeats, spent = 0, 0.0
    while repeats == 0 or (repeats < REPEATS and spent < SECONDS):
        start = time.perf_counter()
        launch()
        spent += time.perf_counter() - start
        repeats += 1
    seconds = spent / repeats
    return {"time_ms": seconds * 1e3, "tflops": problem.flops / max(seconds, 1e-9) / 1e12, "repeats": repeats}


def _on_cpu(plan: Plan, a: _Array, b: _Array, out: _Array) -> tuple[dict[str, Any], _Array]:
    return _timed(plan.problem, lambda: plan(a, b, out=out)), out


def _on_gpu(plan: Plan, a: _Array, b: _Array, out: _Array) -> tuple[dict[str, Any], _Array]:
    try:
        torch = importlib.import_module("torch")  # only needed here
    except ModuleNotFoundError:
        raise KernelwrightError(f"{plan.device} takes arrays of torch, which is not installed") from None
    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}
    kinds["int32"] = torch.int32
    if plan.problem.dtype == "fp8":
        kinds["fp8"] = getattr(torch, a.dtype.name)  # torch and ml_dtypes use the same names for its formats
    where = plan.device.replace("hip", "cuda")

    def move(array: _Array, dtype: str) -> Any:  # through a type that both sides know; strides are kept
        turned = not array.flags.c_contiguous
        known = array if array.dtype.kind == "i" else array.astype(np.float32)
        moved = torch.from_numpy(np.ascontiguousarray(known.T if turned else known)).to(where, kinds[dtype])
        return moved.t() if turned else moved

    problem = plan.problem
    device_a, device_b = move(a, problem.dtype), move(b, problem.dtype)
    device_out = move(out, problem.dtype_c)

    def launch() -> None:
        plan(device_a, device_b, out=device_out)
        torch.cuda.synchronize(where)

    execution = _timed(problem, launch)
    wide = device_out if device_out.dtype == torch.int32 else device_out.float()
    return execution, wide.cpu().numpy()


def _simulated(plan: Plan, a: _Array, b: _Array, out: _Array) -> tuple[dict[str, Any], _Array]:
    plan(a, b, out=out)
    reports = importlib.import_module("kernelwright.simulator").last_reports()  # only needed here
    return {"instructions": sum(report.instructions for report in reports)}, out


def _validated(problem: GemmProblem, a: _Array, b: _Array, out: _Array) -> dict[str, Any]:
    """Counts of elements within their bounds (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.5)."""
    wide_a, wide_b, result = a.astype(np.float64), b.astype(np.float64), out.astype(np.float64)
    exact = wide_a @ wide_b
    errors = np.abs(result - exact)
    if problem.dtype == "int8":
        right = errors == 0
    else:
        unit, smallest = _ROUNDING[problem.dtype_c]
        growth = problem.k * _ROUNDING["fp32"][0]
        cut = math.ceil(problem.k / _FP8_STEP) * _FP8_CUT if problem.dtype == "fp8" else 0.0
        summed = (growth / (1 - growth) + cut) * (np.abs(wide_a) @ np.abs(wide_b))
        right = errors <= summed + unit * (np.abs(exact) + summed) + smallest
    total, correct = errors.size, int(np.count_nonzero(right))
    largest = float(np.max(errors)) if total else 0.0
    return {
        "accuracy": 100.0 * correct / total if total else 100.0,
        "max_error": largest if math.isfinite(largest) else None,
        "correct_elements": correct,
        "total_elements": total,
    }


if __name__ == "__main__":
    sys.exit(main())
