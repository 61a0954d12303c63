"""What an epilogue at run time costs on a GPU: kernels that choose it against those it is compiled into, as JSON.

The library holds tiles with several epilogues and ``activation="any"``. Problems are drawn at random, by ``--seed``,
from what networks compute: images and channels with equal density of their logarithms, filters of 1, 3 and 7, strides
of 1 and 2. Both kernels of a tile compute the same problem in captured graphs that take turns, on operands that rotate
through more memory than L2 has; results, poisoned before, must be the same. Ratios are the time with the
epilogue chosen ÷ compiled in: above 1 choosing costs.

    python benchmarks/gpu/beside_torch/conv_epilogues.py --library .gpu/epilogues/sm_90a --out result.json
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path += map(str, Path(__file__).resolve().parents[1:3])

import torch
from results_file import text
from timing import COLD_BYTES, capture, environment, interleaved

from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary

MOST_SETS, GRAPH_US, MOST_BYTES, MOST_PRODUCTS = 8, 1200.0, 1 << 28, 3e11
EPILOGUE = {"bias": False, "residual": False, "activation": "none"}  # specs omit defaults


def drawn(seed: int) -> Iterator[dict[str, Any]]:
    """An endless sequence of problems without an epilogue."""
    rng = random.Random(seed)

    def between(low: int, high: int, multiple: int) -> int:
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
        return max(multiple, round(value / multiple) * multiple)

    while True:
        points, size = rng.choice((1, 1, 3, 3, 7)), between(7, 112, 1)
        n, c, k = between(1, 64, 1), between(16, 1024, 8), between(16, 1024, 8)
        outputs, sides = n * size**2, {"pad_left": points // 2, "pad_right": points // 2}
        if outputs * max(c, k) * 2 <= MOST_BYTES and outputs * c * k * points**2 < MOST_PRODUCTS:
            yield {
                "n": n,
                "c": c,
                "k": k,
                "size": (size, size),
                "filter": points,
                "stride": rng.choice((1, 1, 2)),
                **sides,
            }


Kernel = tuple[KernelLibrary, Any]


def pairs(libraries: list[KernelLibrary]) -> Iterator[tuple[Kernel, Kernel]]:
    """Pairs of a kernel with a compiled-in epilogue and the first one of the same tile with a run-time epilogue."""
    tile = ("depthwise", "tile", "scheduler", "dtype")
    kernels = [(library, kernel) for library in libraries for kernel in library.kernels]
    choosing = [one for one in kernels if one[1].spec.get("activation") == "any"]
    for library, kernel in kernels:
        if kernel.spec.get("activation") != "any":
            same = (one for one in choosing if all(one[1].spec[key] == kernel.spec[key] for key in tile))
            yield (library, kernel), next(same)


def measured(compiled: Kernel, chooses: Kernel, shape: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Measure one problem with both kernels."""
    kernel = compiled[1]
    fields = {name: kernel.spec.get(name, default) for name, default in EPILOGUE.items()}
    if kernel.spec["depthwise"]:
        shape = {**shape, "k": shape["c"], "groups": shape["c"], "filter": 3, "pad_left": 1, "pad_right": 1}
    problem = ConvProblem("forward", dtype=kernel.spec["dtype"], **shape, **fields)
    kind = torch.float16 if problem.dtype == "fp16" else torch.bfloat16
    count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / sum(problem.span(name) for name in "xwyy"))))
    fan = problem.c // problem.groups * math.prod(problem.filter)  # type: ignore[arg-type]

    def made(extents: Any, scale: float = 1.0) -> list[torch.Tensor]:
        return [(torch.randn(tuple(extents), device="cuda") * scale).to(kind) for _ in range(count)]

    x, w, more = made(problem.x_shape), made(problem.w_shape, fan**-0.5), made(problem.y_shape)
    (bias,) = made((problem.k,))[:1]
    out = torch.empty_like(more[0])
    graphs, results = {}, {}
    calls = max(count, min(200, int(GRAPH_US / max(4.0, problem.flops / 5e8))))
    for name, (library, one) in (("compiled", compiled), ("chosen", chooses)):
        plan = Dispatcher([library], device="cuda:0", selection=one.name).plan(problem)
        workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

        def call(number: int, plan: Any = plan, workspace: torch.Tensor = workspace) -> None:
            at = number % count
            given = {
                "bias": bias if problem.bias else None,
                "residual": more[at] if problem.residual else None,
            }
            plan(
                x[at], w[at], out, **given,
                stream=torch.cuda.current_stream().cuda_stream, workspace=workspace.data_ptr(),
            )  # fmt: skip

        graphs[name] = capture(call, calls)
        out.fill_(math.nan)
        call(0)
        torch.cuda.synchronize()
        results[name] = out.clone()
    same = torch.equal(*(one.view(torch.int16) for one in results.values()))
    close = bool(((results["compiled"] - results["chosen"]).abs() <= 1e-2 * results["compiled"].abs()).all())
    times = {name: min(spent) for name, spent in interleaved(graphs, calls, rounds).items()}
    return {"problem": str(problem), "same_bits": same, "close": close, **{k: round(v, 3) for k, v in times.items()}}


def main() -> int:
    """Measure. Returns 1 if results differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, nargs="+", help="of several the first is recorded")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--problems", type=int, default=6, help="of each kernel")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    libraries, by_kernel, problems = [KernelLibrary.load(one) for one in options.library], {}, drawn(options.seed)
    right = True
    for kernel, chooses in pairs(libraries):
        rows = [measured(kernel, chooses, next(problems), options.rounds) for _ in range(options.problems)]
        ratios = [row["chosen"] / row["compiled"] for row in rows]
        right = right and all(row["same_bits"] or row["close"] for row in rows)
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        by_kernel[kernel[1].name] = {"ratio": round(mean, 4), "worst": round(max(ratios), 4), "problems": rows}
        print(f"{mean:.4f} {max(ratios):.4f} {kernel[1].name}", flush=True)
    every = [row["chosen"] / row["compiled"] for one in by_kernel.values() for row in one["problems"]]
    summary = {"ratio": math.exp(statistics.fmean(map(math.log, every))), "worst": max(every), "problems": len(every)}
    print(json.dumps(summary))
    head = {"environment": environment(options.library[0]), "seed": options.seed, "summary": summary}
    options.out.write_text(text(head, [{"kernel": name, **one} for name, one in by_kernel.items()]))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
