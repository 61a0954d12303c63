"""Device time of calls in CUDA graphs, on operands that rotate through more memory than L2 has; what was measured."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

Call = Callable[[int], object]  # with the number of the operand set

COLD_BYTES = 400_000_000  # several times the 60 MB of L2
MOST_SETS = 64
GRAPH_US = 3000.0
TFLOPS = {"bf16": 700.0, "fp16": 700.0, "fp8": 1200.0, "int8": 1200.0}


def operand_sets(m: int, n: int, k: int, dtype: str) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """A (m, k), B (n, k) and C (m, n), as often as it takes to leave L2 cold."""
    size = 1 if dtype in ("fp8", "int8") else 2
    count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / (size * (m + n) * k + 2 * m * n))))
    kind = {"fp16": torch.float16, "int8": torch.int32}.get(dtype, torch.bfloat16)
    return [
        (_random(m, k, dtype), _random(n, k, dtype), torch.empty(m, n, device="cuda", dtype=kind)) for _ in range(count)
    ]


def _random(rows: int, columns: int, dtype: str) -> torch.Tensor:
    if dtype == "int8":
        return torch.randint(-128, 128, (rows, columns), device="cuda", dtype=torch.int8)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[dtype]
    return torch.randn(rows, columns, device="cuda").to(kind)


def torch_call(sets: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], dtype: str) -> Call:
    """torch.matmul, torch._scaled_mm with fast accumulation, or torch._int_mm."""
    one = torch.ones((), device="cuda")

    def call(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        if dtype == "fp8":
            torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=True, out=out)
        elif dtype == "int8":
            torch._int_mm(a, b.T, out=out)
        else:
            torch.matmul(a, b.T, out=out)

    return call


def repeats(m: int, n: int, k: int, dtype: str, sets: int) -> int:
    """Calls per graph: some milliseconds of work, every operand set at least once unless that takes too long."""
    size = 1 if dtype in ("fp8", "int8") else 2
    estimate = max(2e-6 * m * n * k / TFLOPS[dtype], size * (m * k + n * k + m * n) / 4e6, 2.0)
    wanted = max(1, min(400, int(GRAPH_US / estimate)))
    return max(wanted, sets) if estimate * sets < 8000 else wanted


def interleaved(calls: Mapping[str, Call], count: int, rounds: int, idle_s: float = 0.0) -> dict[str, list[float]]:
    """Microseconds per call in each of ``rounds``, in each of which every call has its turn."""
    graphs = {name: _graph(call, count) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):  # the first is not counted
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(idle_s)
            spent = _replay(graphs[name], count)
            if turn:
                times[name].append(spent)
    return times


def _graph(call: Call, count: int) -> torch.cuda.CUDAGraph:
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


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def environment(library: Path) -> dict[str, str]:
    """Machine, date and versions; ``library`` is the file that is measured."""
    manifest = library.with_name("manifest.json")
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),  # noqa: UP017 - Python 3.10 too
        "gpu": torch.cuda.get_device_name(),
        "driver": subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip(),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "toolchain": json.loads(manifest.read_text())["toolchains"]["cuda"] if manifest.exists() else "",
        "library_sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
    }
