"""What a call of an operator costs on the host: torch's own and ours in turns, results compared.

usage: python benchmarks/dispatch/torch_calls.py LIBRARY… [--device cpu] [--repeats 21] > results.json

Times are CPU time of the calling thread, with one thread for CPU kernels, on problems whose work is short; of a
GPU they are launches. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

import kernelwright.torch as ours
from kernelwright.dispatch import Dispatcher, KernelLibrary

CALLS = 500  # per repeat
_BACKWARD = ", with its backward pass"
_WAYS = ("", ", gradients recorded", _BACKWARD)


class Case(NamedTuple):
    """torch's call and ours, with the operands that may record gradients."""

    torchs: Callable[..., Any]
    ours: Callable[..., Any]
    operands: tuple[torch.Tensor, ...]


def cases(device: str) -> dict[str, Case]:
    """Cases by name of the call."""
    cpu = device == "cpu"
    m, n, k, dtype = (1, 64, 64, torch.float32) if cpu else (16, 1024, 1024, torch.bfloat16)
    images, heads = ((1, 8, 8, 8), (1, 2, 16, 32)) if cpu else ((1, 64, 14, 14), (1, 8, 128, 64))

    def some(*shape: int) -> torch.Tensor:
        made = torch.randn(*shape, device=device, dtype=dtype)
        return made.to(memory_format=torch.channels_last) if len(shape) == 4 and shape != heads else made

    x, weight, bias, matrix = some(m, k), some(n, k), some(n), some(k, n)
    image, filters, of_channels = some(*images), some(images[1], images[1], 3, 3), some(images[1])
    qkv = some(*heads), some(*heads), some(*heads)
    attended = functional.scaled_dot_product_attention
    return {
        "linear": Case(functional.linear, ours.linear, (x, weight)),
        "linear with bias": Case(functional.linear, ours.linear, (x, weight, bias)),
        "gemm": Case(torch.matmul, ours.gemm, (x, matrix)),
        "gemm with bias": Case(lambda a, b, d: torch.addmm(d, a, b), lambda a, b, d: ours.gemm(a, b, ds=(d,)),
                               (x, matrix, bias)),
        "conv2d": Case(lambda x, w: functional.conv2d(x, w, None, 1, 1), lambda x, w: ours.conv2d(x, w, None, 1, 1),
                       (image, filters)),
        "conv2d with bias": Case(lambda x, w, b: functional.conv2d(x, w, b, (1, 1), (1, 1)),
                                 lambda x, w, b: ours.conv2d(x, w, b, (1, 1), (1, 1)), (image, filters, of_channels)),
        "scaled_dot_product_attention": Case(attended, ours.scaled_dot_product_attention, qkv),
        "the same, causal": Case(lambda *qkv: attended(*qkv, is_causal=True),
                                 lambda *qkv: ours.scaled_dot_product_attention(*qkv, is_causal=True), qkv),
    }  # fmt: skip


def calls(case: Case, way: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """torch's call and ours: without gradients, with gradients recorded, or with a backward pass."""
    first, *rest = case.operands
    learned = [one.detach().clone().requires_grad_() for one in rest]
    operands = case.operands if way == "" else (first, *learned)
    if way != _BACKWARD:
        return lambda: case.torchs(*operands), lambda: case.ours(*operands)
    grad = torch.randn_like(case.torchs(*case.operands))

    def step(call: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(call(*operands), learned, grad)

    return step(case.torchs), step(case.ours)


def measure(torchs: Callable[[], Any], call: Callable[[], Any], repeats: int) -> list[list[float]]:
    """Microseconds per call of both, measured in turns."""
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
    parser.add_argument("libraries", nargs="+", help="what KernelLibrary.load_for takes: one of each operation")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=21)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    libraries = [KernelLibrary.load_for(given.device, one) for one in given.libraries]
    dispatcher = Dispatcher(libraries, device=given.device)
    if given.device == "cpu":
        dispatcher.set_num_threads(1)
    ours.use(dispatcher)
    rows = {}
    for (name, case), way in itertools.product(cases(given.device).items(), _WAYS):
        torchs, call = calls(case, way)
        ours.reset_report()
        with torch.set_grad_enabled(way != ""), ours.strict():
            for _ in range(2):  # on the Python road, then on the native one
                torch.testing.assert_close(call(), torchs(), rtol=2e-2, atol=1e-1)
            theirs, own = measure(torchs, call, given.repeats)
        ratios = [one / other for one, other in zip(own, theirs, strict=True)]
        rows[name + way] = {
            "torch_us": _summary(theirs), "ours_us": _summary(own), "ours / torch": _summary(ratios),
            "smallest ours / smallest torch": min(own) / min(theirs),
            "calls of the native road": sum(one.native for one in ours.report().operators),
        }  # fmt: skip
        print(f"{name + way}: {rows[name + way]['smallest ours / smallest torch']:.2f}", file=sys.stderr)
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
