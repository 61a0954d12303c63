"""What a call of an operator costs on the host: torch's own and ours in turns, results compared.

usage: python benchmarks/dispatch/torch_calls.py LIBRARY [--device cpu] [--repeats 21] > results.json

Times are CPU time of the calling thread, with one thread for CPU kernels, on problems whose work is short; of a
GPU they are launches. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is installed.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

import kernelwright.torch as ours
from kernelwright.dispatch import Dispatcher, KernelLibrary

CALLS = 2000  # of each repeat


def cases(device: str) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], bool]]:
    """Torch's call, ours, and whether gradients are recorded."""
    cpu = device == "cpu"
    m, n, k, dtype = (1, 64, 64, torch.float32) if cpu else (16, 1024, 1024, torch.bfloat16)
    x = torch.randn(m, k, device=device, dtype=dtype)
    weight = torch.randn(n, k, device=device, dtype=dtype)
    bias = torch.randn(n, device=device, dtype=dtype)
    learned = weight.clone().requires_grad_()
    made: dict[str, tuple[Callable[[], Any], Callable[[], Any], bool]] = {}
    for words, one in (("", None), (" with bias", bias)):
        made[f"linear{words}"] = (
            lambda one=one: functional.linear(x, weight, one), lambda one=one: ours.linear(x, weight, one), False,
        )  # fmt: skip
        made[f"linear{words}, gradients recorded"] = (
            lambda one=one: functional.linear(x, learned, one), lambda one=one: ours.linear(x, learned, one), True,
        )  # fmt: skip
    return made


def measure(torchs: Callable[[], Any], call: Callable[[], Any], repeats: int) -> list[list[float]]:
    """Microseconds per call of both, in turns."""
    for _ in range(200):
        torchs(), call()
    times: list[list[float]] = [[], []]
    for _ in range(repeats):
        for row, run in zip(times, (torchs, call), strict=True):
            start = time.thread_time_ns()
            for _ in range(CALLS):
                run()
            row.append((time.thread_time_ns() - start) / CALLS / 1e3)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return times


def _summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = int(0.9 * (len(ordered) - 1))
    return {"median": statistics.median(ordered), "smallest": ordered[0], "90th percentile": ordered[at]}


def main() -> int:
    """Print the results as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="what KernelLibrary.load_for takes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=21)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dispatcher = Dispatcher(KernelLibrary.load_for(given.device, given.library), device=given.device)
    if given.device == "cpu":
        dispatcher.set_num_threads(1)
    ours.use(dispatcher)
    rows = {}
    for name, (torchs, call, recorded) in cases(given.device).items():
        with torch.set_grad_enabled(recorded), ours.strict():
            for _ in range(2):  # by the Python road, then by the native one
                torch.testing.assert_close(call(), torchs(), rtol=2e-2, atol=1e-1)
            theirs, own = measure(torchs, call, given.repeats)
        ratios = [one / other for one, other in zip(own, theirs, strict=True)]
        rows[name] = {"torch_us": _summary(theirs), "ours_us": _summary(own), "ours / torch": _summary(ratios)}
    about = {
        "date": time.strftime("%Y-%m-%d"), "machine": platform.processor() or platform.machine(),
        "device": torch.cuda.get_device_name() if given.device != "cpu" else _processor(),
        "load": Path("/proc/loadavg").read_text().split()[0], "python": platform.python_version(),
        "torch": torch.__version__, "road": ours.report().road, "calls": CALLS, "repeats": given.repeats,
    }  # fmt: skip
    json.dump({"about": about, "rows": rows}, sys.stdout, indent=1)
    print()
    return 0


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
