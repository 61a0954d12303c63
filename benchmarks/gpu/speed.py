"""GEMM of the dispatcher's choice against torch on the same GPU: bf16, fp16, fp8, int8, and a fused epilogue.

Both sides run in CUDA graphs over operands that rotate through more memory than L2 has, in turns within each round; a
ratio is taken within its round, because the card's clocks change. ``python benchmarks/gpu/speed.py --library FOLDER
--out result.json`` needs the folder of libgemm.so and manifest.json, and $KERNELWRIGHT_LIBRARY.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import Call, environment, interleaved, operand_sets, repeats, spread, torch_call

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary

Shape = tuple[int, int, int]
FLOAT_SHAPES: tuple[Shape, ...] = (
    *((extent, extent, extent) for extent in (256, 512, 1024, 2048, 3072, 4096, 5120, 6144, 8192, 16384)),
    *((m, 8192, 8192) for m in (1, 16, 32, 64, 128, 256)),
    *((m, n, k) for n, k in ((14336, 4096), (4096, 14336)) for m in (1, 16, 128, 512, 2048, 4096)),
    *((m, 4096, 4096) for m in (1, 64, 256, 512, 1024, 16384)),
    *((64, 4096, 14336), (1024, 14336, 4096), (2048, 6144, 4096), (8192, 6144, 4096), (8192, 28672, 8192)),
    (2000, 3000, 4000),
)
SQUARES = tuple((extent, extent, extent) for extent in (1024, 2048, 3072, 4096, 8192))
LLM_SHAPES: tuple[Shape, ...] = (
    *((m, 8192, 8192) for m in (32, 64, 128, 256)),
    *((64, 4096, 14336), (128, 4096, 14336), (128, 14336, 4096), (256, 4096, 4096), (512, 4096, 4096)),
    *((512, 14336, 4096), (1024, 4096, 4096), (2048, 6144, 4096), (4096, 14336, 4096), (4096, 4096, 14336)),
)
SCALED_SHAPES: tuple[Shape, ...] = (*SQUARES, (1, 8192, 8192), (16, 8192, 8192), *LLM_SHAPES)
INT_SHAPES: tuple[Shape, ...] = (*SQUARES, (32, 14336, 4096), *LLM_SHAPES)  # torch._int_mm refuses M <= 16
FUSED_SHAPES = ((4096, 4096, 4096), (4096, 14336, 4096), (1024, 4096, 4096), (256, 8192, 8192))
OUTPUT = {"fp8": "bf16", "int8": "int32"}


def compare(dispatcher: Dispatcher, shape: Shape, dtype: str, rounds: int) -> dict[str, Any]:
    """Both sides' microseconds and their ratio, which is above 1 where the dispatcher is faster."""
    m, n, k = shape
    sets = operand_sets(m, n, k, dtype)
    plan = dispatcher.plan(GemmProblem(m, n, k, dtype=dtype, dtype_c=OUTPUT.get(dtype, dtype), split_k=0))
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

    def ours(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        plan(
            a.data_ptr(), b.data_ptr(), out=out.data_ptr(),
            stream=torch.cuda.current_stream().cuda_stream, workspace=workspace.data_ptr(),
        )  # fmt: skip

    theirs = torch_call(sets, dtype)
    error = _error(ours, theirs, sets[0][2])
    return _measured(
        shape, dtype, str(plan.kernel.name), error, {"torch": theirs, "kernelwright": ours}, len(sets), rounds
    )


def compare_fused(dispatcher: Dispatcher, shape: Shape, activation: str, rounds: int) -> dict[str, Any]:
    """act(A·B + bias) in one kernel against torch's matmul, addition in place and activation."""
    m, n, k = shape
    sets = operand_sets(m, n, k, "bf16")
    bias = torch.randn(n, device="cuda").bfloat16()
    problem = GemmProblem(m, n, k, dtype="bf16", split_k=0, num_d=1, ld_multi_d=(0,), activation=activation)
    plan = dispatcher.plan(problem)
    act: Callable[[torch.Tensor], torch.Tensor] = {"relu": torch.relu_, "gelu": torch.nn.functional.gelu}[activation]

    def ours(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        stream = torch.cuda.current_stream().cuda_stream
        plan(a.data_ptr(), b.data_ptr(), out=out.data_ptr(), ds=[bias.data_ptr()], stream=stream)

    def theirs(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        torch.matmul(a, b.T, out=out)
        out.add_(bias)
        act(out)

    found = {"torch": theirs, "kernelwright": ours}
    return _measured(shape, f"bf16 + bias, {activation}", str(plan.kernel.name), None, found, len(sets), rounds)


def _measured(
    shape: Shape, what: str, kernel: str, error: float | None, calls: dict[str, Call], sets: int, rounds: int
) -> dict[str, Any]:
    m, n, k = shape
    dtype = what.split()[0]
    count = repeats(m, n, k, dtype, sets)
    times = interleaved(calls, count, rounds, idle_s=0.004)
    ratios = [theirs / ours for theirs, ours in zip(times["torch"], times["kernelwright"], strict=True)]
    found = {
        "m": m, "n": n, "k": k, "what": what, "kernel": kernel, "difference": error, "sets": sets, "calls": count,
        "us": {name: spread(values) for name, values in times.items()}, "ratio": spread(ratios),
    }  # fmt: skip
    rate = 2e-6 * m * n * k / statistics.median(times["kernelwright"])
    print(f"{what:24} {m}x{n}x{k}: {found['ratio']['median']:.3f}  {rate:7.1f} Tops/s  {kernel}", flush=True)
    return found


def _error(ours: Call, theirs: Call, out: torch.Tensor) -> float:
    theirs(0)
    expected = out.double()
    out.fill_(-77 if out.dtype == torch.int32 else float("nan"))
    ours(0)
    torch.cuda.synchronize()
    return float((out.double() - expected).norm() / expected.norm())


def summary(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric mean and worst of the median ratios, by what was computed."""
    groups: dict[str, list[float]] = {}
    for result in results:
        groups.setdefault(result["what"].split(",")[0], []).append(result["ratio"]["median"])
    return {
        what: {"shapes": len(r), "geometric_mean": math.exp(sum(map(math.log, r)) / len(r)), "worst": min(r)}
        for what, r in groups.items()
    }


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libgemm.so and manifest.json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="bf16,fp16,fp8,int8,fused")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device="cuda:0")
    shapes = {"bf16": FLOAT_SHAPES, "fp16": FLOAT_SHAPES, "fp8": SCALED_SHAPES, "int8": INT_SHAPES}
    results = []
    for dtype in options.only.split(","):
        for shape in shapes.get(dtype, FUSED_SHAPES):
            if dtype == "fused":
                results += [compare_fused(dispatcher, shape, act, options.rounds) for act in ("relu", "gelu")]
            else:
                results.append(compare(dispatcher, shape, dtype, options.rounds))
            torch.cuda.empty_cache()
            report = {
                "environment": environment(options.library / "libgemm.so"),
                "summary": summary(results),
                "results": results,
            }
            if options.out:
                options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(summary(results), indent=1))


if __name__ == "__main__":
    _main()
