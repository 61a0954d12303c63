"""Device time of calls in CUDA graphs, on operands that rotate through more memory than L2 has, and the environment."""

from __future__ import annotations

import datetime
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import measured_library

Call = Callable[[int], object]  # takes the number of the operand set
Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # A (m, k), B (n, k), C (m, n)

COLD_BYTES = 400_000_000  # several times the 60 MB of L2
MOST_SETS = 64
GRAPH_US = 3000.0
TFLOPS = {"bf16": 700.0, "fp16": 700.0, "fp8": 1200.0, "int8": 1200.0}
OUTPUT = {"fp8": "bf16", "int8": "int32"}  # else the operands' dtype
INTEGER_POISON = -0x5A5A5A5B  # not a sum of int8 products of these extents


def operand_sets(m: int, n: int, k: int, dtype: str, scale: float = 1.0) -> list[Operands]:
    """A (m, k), B (n, k) and C (m, n), in enough sets to leave L2 cold; A is random times ``scale``."""
    size = 1 if dtype in ("fp8", "int8") else 2
    count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / (size * (m + n) * k + 2 * m * n))))
    kind = {"fp16": torch.float16, "int8": torch.int32}.get(dtype, torch.bfloat16)
    return [
        (_random(m, k, dtype, scale), _random(n, k, dtype), torch.empty(m, n, device="cuda", dtype=kind))
        for _ in range(count)
    ]


def _random(rows: int, columns: int, dtype: str, scale: float = 1.0) -> torch.Tensor:
    if dtype == "int8":
        return torch.randint(-128, 128, (rows, columns), device="cuda", dtype=torch.int8)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[dtype]
    return (torch.randn(rows, columns, device="cuda") * scale).to(kind)


def repeats(m: int, n: int, k: int, dtype: str, sets: int) -> int:
    """Calls per graph: a few milliseconds of work, each operand set at least once unless that takes too long."""
    size = 1 if dtype in ("fp8", "int8") else 2
    estimate = max(2e-6 * m * n * k / TFLOPS[dtype], size * (m * k + n * k + m * n) / 4e6, 2.0)
    wanted = max(1, min(400, int(GRAPH_US / estimate)))
    return max(wanted, sets) if estimate * sets < 8000 else wanted


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A·Bᵀ in float64, the reference for every output."""
    wide_a, wide_b = (x.float().double() if x.is_floating_point() else x.double() for x in (a, b))
    return wide_a @ wide_b.T


def poison(out: torch.Tensor) -> None:
    """Fill with NaN, or with an integer that no product has, so that unwritten elements count as errors."""
    out.fill_(float("nan") if out.is_floating_point() else INTEGER_POISON)


def relative_error(out: torch.Tensor, expected: torch.Tensor) -> float:
    """‖out - expected‖ / ‖expected‖ in float64."""
    return float((out.double() - expected).norm() / expected.norm())


def output_errors(
    graphs: Mapping[str, torch.cuda.CUDAGraph], out: torch.Tensor, expected: torch.Tensor
) -> dict[str, float]:
    """Relative error of ``out``, first poisoned, after a replay of each graph: the same launches that are timed."""
    errors = {}
    for name, graph in graphs.items():
        poison(out)
        graph.replay()
        torch.cuda.synchronize()
        errors[name] = relative_error(out, expected)
    return errors


def interleaved(
    graphs: Mapping[str, torch.cuda.CUDAGraph], count: int, rounds: int, idle_s: float = 0.0
) -> dict[str, list[float]]:
    """Microseconds per call, with ``count`` per graph, in each of ``rounds``; every graph has a turn in each round."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(rounds + 1):  # the first round is not counted
        names = list(graphs)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(idle_s)
            spent = _replay(graphs[name], count)
            if turn:
                times[name].append(spent)
    return times


def capture(call: Call, count: int) -> torch.cuda.CUDAGraph:
    """A graph of ``count`` calls numbered from 0; an exception of the call's first run propagates."""
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            call(number)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def _replay(graph: torch.cuda.CUDAGraph, count: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count * 1e3


def environment(library: Path) -> dict[str, Any]:
    """Machine, date and versions, and the library whose folder contains manifest.json."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),  # noqa: UP017 - Python 3.10 too
        "gpu": torch.cuda.get_device_name(),
        "driver": subprocess.run(query, capture_output=True, text=True, check=False).stdout.partition("\n")[0],
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "library": measured_library.describe(json.loads((library / "manifest.json").read_text())),
    }
