"""Norms on a GPU beside torch's, interleaved, and bytes per second beside a copy's.

Calls are replayed from CUDA graphs; operands rotate through more memory than L2 has. Ours is the kernel that the
dispatcher plans; with ``--every`` each kernel of the library that serves a problem is measured too, which says what
selection loses. The bytes are those of operands, each once.
Run ``python benchmarks/gpu/beside_torch/norm.py --library FOLDER --out result.json``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path += map(str, Path(__file__).resolve().parents[1:3])

import results_file
import torch
from timing import capture, environment, interleaved

from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.operations.norm import NormProblem

COLD_BYTES, MOST_SETS = 200_000_000, 32
GRAPH_US, BYTES_PER_US = 1500.0, 3.5e6
ROWS, COLUMNS = (1, 64, 1024, 4096, 16384), (1024, 4096, 8192, 16384)
EPSILON = 1e-5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
Case = tuple[str, str, bool]  # kind, result or direction, residual
CASES: tuple[Case, ...] = (
    ("rms", "forward", False), ("layer", "forward", False), ("rms", "forward", True), ("rms", "int8", False),
    ("rms", "fp8", False), ("rms", "backward", False), ("layer", "backward", False),
)  # fmt: skip


def problem_of(case: Case, rows: int, columns: int, dtype: str) -> NormProblem:
    """Dense rows with a weight and, for layer norm, a bias."""
    kind, what, residual = case
    return NormProblem(
        kind, rows, columns, dtype=dtype, dtype_y=what if what in ("int8", "fp8") else "", epsilon=EPSILON,
        bias=kind == "layer", residual=residual, backward=what == "backward",
    )  # fmt: skip


def operands(p: NormProblem) -> dict[str, torch.Tensor]:
    """Random inputs, and results not yet written."""
    shape, kind = (p.rows, p.columns), DTYPES[p.dtype]

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(kind)

    quantised = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
    tensors = {"x": random(*shape), "weight": random(p.columns)}
    tensors["out"] = torch.empty(shape, device="cuda", dtype=quantised.get(p.dtype_y, kind))
    if p.backward:
        tensors |= {"dy": random(*shape), "dweight": torch.empty_like(tensors["weight"])}
        return tensors | ({"dbias": torch.empty_like(tensors["weight"])} if p.bias else {})
    if p.residual:
        tensors |= {"residual": random(*shape), "sum": torch.empty_like(tensors["x"])}
    if p.quantised:
        tensors["scales"] = torch.empty(p.rows, device="cuda")
    return tensors | ({"bias": random(p.columns)} if p.bias else {})


def torchs(p: NormProblem, sets: list[dict[str, torch.Tensor]]) -> Callable[[int], object] | None:
    """torch's own call for the same norm; None if it has no single operator for it."""
    shape = (p.columns,)
    if p.quantised:
        return None
    if p.kind == "rms" and p.backward:
        saved = [torch.ops.aten._fused_rms_norm(s["x"], shape, s["weight"], EPSILON)[1] for s in sets]
        return lambda i: torch.ops.aten._fused_rms_norm_backward(
            sets[i]["dy"], sets[i]["x"], shape, saved[i], sets[i]["weight"], [True, True]
        )
    if p.backward:
        kept = [torch.native_layer_norm(s["x"], shape, s["weight"], s["weight"], EPSILON)[1:] for s in sets]
        return lambda i: torch.ops.aten.native_layer_norm_backward(
            sets[i]["dy"], sets[i]["x"], shape, *kept[i], sets[i]["weight"], sets[i]["weight"], [True, True, True]
        )
    if p.kind == "rms":
        if p.residual:
            return lambda i: torch.rms_norm(sets[i]["x"] + sets[i]["residual"], shape, sets[i]["weight"], EPSILON)
        return lambda i: torch.rms_norm(sets[i]["x"], shape, sets[i]["weight"], EPSILON)
    return lambda i: torch.layer_norm(sets[i]["x"], shape, sets[i]["weight"], sets[i]["bias"], EPSILON)


def measured(library: KernelLibrary, p: NormProblem, rounds: int, every: bool) -> dict[str, Any]:
    """Microseconds of ours and torch's, their ratio in each round, and those of each kernel if requested."""
    count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / max(p.bytes_moved, 1))))
    sets = [operands(p) for _ in range(count)]
    calls = max(count, min(200, int(GRAPH_US / max(p.bytes_moved / BYTES_PER_US, 3.0))))
    planned = Dispatcher([library], device="cuda:0").plan(p)
    chosen = planned.kernel.name
    names = [chosen]
    if every:
        fields = {"kind": p.kind, "dtype": p.dtype, "dtype_y": p.dtype_y}
        fields["direction"] = "backward" if p.backward else "forward"
        served = [one.name for one in library.kernels if all(one.spec[key] == fields[key] for key in fields)]
        names += [name for name in served if name != chosen]
    graphs, keep = {}, []
    for name in names:
        plan = planned if name == chosen else Dispatcher([library], device="cuda:0", selection=name).plan(p)
        workspace = torch.empty(max(plan.workspace_bytes, 256), device="cuda", dtype=torch.uint8)
        keep.append((plan, workspace))

        def call(i: int, plan: Any = plan, at: int = workspace.data_ptr()) -> object:
            given = sets[i % count]
            return plan(**given, workspace=at)

        graphs[name] = capture(call, calls)
    other = torchs(p, sets)
    if other is not None:
        graphs["torch"] = capture(lambda i: other(i % count), calls)
    times = interleaved(graphs, calls, rounds)
    us = {name: statistics.median(samples) for name, samples in times.items()}
    row: dict[str, Any] = {
        "us": round(us[chosen], 3),
        "kernel": chosen,
        "gbytes_per_s": p.bytes_moved / us[chosen] / 1e3,
    }
    if other is not None:
        ratios = [one / ours for one, ours in zip(times["torch"], times[chosen], strict=True)]
        row |= {"torch_us": round(us["torch"], 3), "ratio": statistics.median(ratios), "least": min(ratios)}
    if every:
        row["kernels"] = {name: round(us[name], 3) for name in names}
    return row


def copy_rate(rounds: int) -> float:
    """GB/s of a copy of 1 GiB, read and written."""
    source, target = (torch.empty(1 << 30, device="cuda", dtype=torch.uint8) for _ in range(2))
    times = interleaved({"copy": capture(lambda i: target.copy_(source), 2)}, 2, rounds)
    return (2 << 30) / statistics.median(times["copy"]) / 1e3


def cases(dtypes: list[str], quick: bool) -> Iterator[tuple[Case, str, int, int]]:
    """All cases; ``quick`` leaves out most shapes."""
    for dtype, case, rows, columns in itertools.product(dtypes, CASES, ROWS, COLUMNS):
        if quick and (rows, columns) not in ((64, 4096), (4096, 4096), (4096, 16384)):
            continue
        yield case, dtype, rows, columns


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libnorm.so and manifest.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "fp16"], choices=list(DTYPES))
    parser.add_argument("--every", action="store_true", help="measure every kernel that serves a problem")
    parser.add_argument("--quick", action="store_true", help="three shapes alone")
    given = parser.parse_args()
    library = KernelLibrary.load(given.library)
    rows: list[dict[str, Any]] = []
    head = {"environment": environment(given.library), "copy_gbytes_per_s": round(copy_rate(given.rounds), 1)}
    for case, dtype, count, columns in cases(given.dtypes, given.quick):
        kind, what, residual = case
        p = problem_of(case, count, columns, dtype)
        if not any(one.spec["dtype_y"] == p.dtype_y and one.spec["kind"] == kind for one in library.kernels):
            continue
        figures = measured(library, p, given.rounds, given.every)
        rows.append(
            {
                "kind": kind,
                "what": what,
                "residual": residual,
                "dtype": dtype,
                "rows": count,
                "columns": columns,
                **figures,
            }
        )
        print(*(f"{key}={value}" for key, value in rows[-1].items() if key != "kernels"), flush=True)
        torch.cuda.empty_cache()
        given.out.write_text(results_file.text(head, rows))  # measurements survive the failure of a later case


if __name__ == "__main__":
    main()
