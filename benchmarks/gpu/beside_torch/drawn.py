"""What a training step multiplies, in layers of models that no list here has: forward, fused, both gradients.

Rows are drawn with equal density of their logarithms from 1 to 16,384. In each round of a case every call has its turn:
ours, as the dispatcher chooses, torch's, and, where the library has them, kernels with the same tile whose epilogue is
compiled in and chosen at run time. Outputs are compared with float64 first; a wrong one has no ratio. Run
``python benchmarks/gpu/beside_torch/drawn.py --library FOLDER --out result.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path += map(str, Path(__file__).resolve().parents[1:3])

import torch
from equality import error_limit, unequal
from ratios import ratios, spread
from timing import COLD_BYTES, capture, environment, interleaved, output_errors, repeats

from kernelwright.dispatch import Dispatcher, GemmProblem, Heuristic, KernelLibrary

# Hidden and inner width; no kernel, rule or constant was chosen on these families.
FAMILIES = {
    "StarCoder2 7B": (4608, 18432),
    "Granite 3 8B": (4096, 12800),
    "Nemotron 4 15B": (6144, 24576),
    "SmolLM2 1.7B": (2048, 8192),
    "Whisper large": (1280, 5120),
    "MPT 30B": (7168, 28672),
    "InternLM2 20B": (6144, 16384),
    "RoBERTa base": (768, 3072),
}
MOST_ROWS = 16384
MOST_SETS = 16
OURS = "ours"
ELEMENT = torch.bfloat16
Tensors = dict[str, torch.Tensor]
Call = Callable[[Tensors], object]


@dataclass(frozen=True)
class Kind:
    """A product of a layer with weight W (n, k), input x (rows, k) and gradient dy (rows, n), and torch's calls.

    ``problem``: fields besides the extents; ``ds``: operands that are D tensors; ``theirs``: torch's calls by name.
    """

    layout: str
    problem: dict[str, Any]
    ds: tuple[str, ...]
    theirs: dict[str, Call]
    finish: Callable[[torch.Tensor, Tensors], torch.Tensor]
    c: bool = False


def _plain(total: torch.Tensor, t: Tensors) -> torch.Tensor:
    return total


def _left(t: Tensors, layout: str) -> torch.Tensor:
    return t["a"].T if layout[0] == "c" else t["a"]


def _right(t: Tensors, layout: str) -> torch.Tensor:
    return t["b"].T if layout[1] == "c" else t["b"]


def _mm(layout: str) -> Call:
    return lambda t: torch.mm(_left(t, layout), _right(t, layout), out=t["out"])


_GELU = torch.ops.aten.gelu_
_BIAS = {"num_d": 1, "ld_multi_d": (0,)}
KINDS = {
    "forward": Kind("rcr", {}, (), {"mm": _mm("rcr")}, _plain),
    "bias": Kind(
        "rcr", _BIAS, ("bias",),
        {"addmm": lambda t: torch.addmm(t["bias"], t["a"], t["b"].T, out=t["out"])},
        lambda total, t: total + t["bias"].double(),
    ),
    "bias and gelu": Kind(
        "rcr", {**_BIAS, "activation": "fast_gelu"}, ("bias",),
        {
            "_addmm_activation": lambda t: torch._addmm_activation(
                t["bias"], t["a"], t["b"].T, use_gelu=True, out=t["out"]
            ),
            "addmm, gelu_": lambda t: _GELU(
                torch.addmm(t["bias"], t["a"], t["b"].T, out=t["out"]), approximate="tanh"
            ),
        },
        lambda total, t: torch.nn.functional.gelu(total + t["bias"].double(), approximate="tanh"),
    ),
    "residual": Kind(
        "rcr", {"num_d": 1}, ("residual",),
        {"addmm": lambda t: torch.addmm(t["residual"], t["a"], t["b"].T, out=t["out"])},
        lambda total, t: total + t["residual"].double(),
    ),
    "silu": Kind(
        "rcr", {"activation": "silu"}, (),
        {"mm, silu_": lambda t: torch.ops.aten.silu_(torch.mm(t["a"], t["b"].T, out=t["out"]))},
        lambda total, t: torch.nn.functional.silu(total),
    ),
    "input gradient": Kind("rrr", {}, (), {"mm": _mm("rrr")}, _plain),
    "weight gradient": Kind("crr", {}, (), {"mm": _mm("crr")}, _plain),
    "added in fp32": Kind(
        "crr", {"dtype_c": "fp32", "beta": 1.0}, (),
        {
            "mm, add": lambda t: torch.add(t["c"], torch.mm(t["a"].T, t["b"]), out=t["out"]),
            "addmm": lambda t: torch.addmm(t["c"], t["a"].T, t["b"], out_dtype=torch.float32, out=t["out"]),
        },
        lambda total, t: total + t["c"].double(), True,
    ),
}  # fmt: skip


def layers(seed: int) -> Iterator[tuple[str, int, int, int]]:
    """Name, rows, n and k."""
    drawn = random.Random(seed)
    for family, (hidden, inner) in FAMILIES.items():
        for name, n, k in (("attention", hidden, hidden), ("up", inner, hidden), ("down", hidden, inner)):
            yield f"{family} {name}", round(math.exp(drawn.uniform(0, math.log(MOST_ROWS)))), n, k


def extents(kind: Kind, rows: int, n: int, k: int) -> tuple[int, int, int]:
    """m, n and k of the product."""
    return {"rcr": (rows, n, k), "rrr": (rows, k, n), "crr": (n, k, rows)}[kind.layout]


def operands(kind: Kind, m: int, n: int, k: int) -> list[Tensors]:
    """As many operand sets as needed to leave L2 cold."""
    wide = kind.problem.get("dtype_c") == "fp32"
    size = 2 * (m * k + n * k) + (8 if wide else 2) * m * n
    output = torch.float32 if wide else ELEMENT

    def random_(rows: int, columns: int, kind_: torch.dtype = ELEMENT) -> torch.Tensor:
        return torch.randn(rows, columns, device="cuda").to(kind_)

    sets = []
    for _ in range(max(1, min(MOST_SETS, math.ceil(COLD_BYTES / size)))):
        one = {
            "a": random_(*((k, m) if kind.layout[0] == "c" else (m, k))),
            "b": random_(*((n, k) if kind.layout[1] == "c" else (k, n))),
            "out": torch.empty(m, n, device="cuda", dtype=output),
        }
        if "bias" in kind.ds:
            one["bias"] = torch.randn(n, device="cuda").to(ELEMENT)
        if "residual" in kind.ds:
            one["residual"] = random_(m, n)
        if kind.c:
            one["c"] = random_(m, n, torch.float32)
        sets.append(one)
    return sets


def our_call(dispatcher: Dispatcher, kind: Kind, shape: tuple[int, int, int], sets: list[Tensors]) -> tuple[Any, str]:
    """The launch of the kernel that the dispatcher chooses, and its name."""
    fields = {"dtype": "bf16", "layout": kind.layout, "split_k": 0, **kind.problem}
    plan = dispatcher.plan(GemmProblem(*shape, **fields))
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

    def call(number: int) -> None:
        t = sets[number % len(sets)]
        plan(
            t["a"].data_ptr(), t["b"].data_ptr(), t["c"].data_ptr() if kind.c else None, out=t["out"].data_ptr(),
            ds=[t[name].data_ptr() for name in kind.ds], stream=torch.cuda.current_stream().cuda_stream,
            workspace=workspace.data_ptr(),
        )  # fmt: skip

    return call, str(plan.kernel.name)


def twins(library: KernelLibrary, kind: Kind) -> list[tuple[Any, Any]]:
    """Pairs of a kernel with this epilogue and one with the same tile and a run-time epilogue."""
    apart = ("activation", "num_d", "d_op", "batched")

    def rest(spec: dict[str, Any]) -> str:
        return json.dumps({key: value for key, value in spec.items() if key not in apart}, sort_keys=True)

    wanted = (kind.problem.get("num_d", 0), kind.problem.get("activation", "none"))
    of_tile = {rest(one.spec): one for one in library.kernels if one.spec.get("activation") == "any"}
    return [
        (one, of_tile[rest(one.spec)])
        for one in library.kernels
        if (one.spec.get("num_d", 0), one.spec.get("activation", "none")) == wanted
        and one.spec["layout"] == kind.layout and rest(one.spec) in of_tile
    ]  # fmt: skip


def measure(
    library: KernelLibrary, dispatcher: Dispatcher, name: str, what: str, rows: int, n: int, k: int, rounds: int
) -> dict[str, Any]:
    """One case; ``ratio`` is torch's time over ours, ``twins`` that of compiled-in over run-time epilogues."""
    kind = KINDS[what]
    shape = extents(kind, rows, n, k)
    row: dict[str, Any] = {"layer": name, "kind": what, **dict(zip("mnk", shape, strict=True))}
    sets = operands(kind, *shape)
    count = row["calls"] = repeats(*shape, "bf16", len(sets))
    ours, row["kernel"] = our_call(dispatcher, kind, shape, sets)
    graphs, refused = {OURS: capture(ours, count)}, {}
    for library_name in ("cublas", "cublaslt"):
        for call_name, call in kind.theirs.items():
            torch.backends.cuda.preferred_blas_library(library_name)
            try:
                graphs[f"{call_name}, {library_name}"] = capture(lambda i, call=call: call(sets[i % len(sets)]), count)
            except (RuntimeError, TypeError) as error:
                refused[f"{call_name}, {library_name}"] = str(error).partition("\n")[0][:120]
    pairs, kept = [], []  # what a graph reads must live as long as the graph
    for fixed, chosen in twins(library, kind)[:4]:
        for kernel in (fixed, chosen):
            one = Dispatcher([library], device="cuda:0", selection=kernel.identity)
            call, _ = our_call(one, kind, shape, sets)
            kept.append(call)
            graphs[kernel.name] = capture(call, count)
        pairs.append((fixed.name, chosen.name))
    expected = kind.finish(_left(sets[0], kind.layout).double() @ _right(sets[0], kind.layout).double(), sets[0])
    errors = row["errors"] = output_errors(graphs, sets[0]["out"], expected)
    del expected
    off = unequal(errors, error_limit("bf16", kind.problem.get("dtype_c", "bf16")))
    if kind.c:  # torch rounds products to bf16 before adding them
        off = {call: error for call, error in off.items() if not call.startswith("mm, add") or error > 0.01}
    row["refused"], row["unequal"] = refused, sorted(off)
    times = interleaved({call: graph for call, graph in graphs.items() if call not in off}, count, rounds, idle_s=0.002)
    row["us"] = {call: spread(values) for call, values in times.items()}
    theirs = [call for call in times if call.endswith(("cublas", "cublaslt"))]
    if OURS in times and theirs:
        best = min(theirs, key=lambda call: row["us"][call]["median"])
        row["reference"] = best
        row["ratio"] = spread(ratios(times[best], times[OURS]))
    row["twins"] = {
        chosen: spread(ratios(times[fixed], times[chosen]))
        for fixed, chosen in pairs
        if fixed in times and chosen in times
    }
    return row


def summary(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric mean and worst ratio by kind, for torch over ours and for compiled-in over run-time epilogues."""
    summaries: dict[str, dict[str, float]] = {}
    for what in KINDS:
        mine = [one for one in results if one["kind"] == what]
        for name, values in (
            ("ratio", [one["ratio"]["median"] for one in mine if "ratio" in one]),
            ("twins", [pair["median"] for one in mine for pair in one["twins"].values()]),
        ):
            if values:
                mean = math.exp(sum(map(math.log, values)) / len(values))
                summaries[f"{what}: {name}"] = {
                    "cases": len(values),
                    "mean": round(mean, 4),
                    "worst": round(min(values), 4),
                }
    return summaries


def main() -> int:
    """Measure. Returns 1 if one of our outputs is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libgemm.so and manifest.json")
    parser.add_argument("--model", type=Path, help="a learned selection, as `kernelwright heuristic` compiles it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=600.0, help="no case begins later")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    library = KernelLibrary.load(options.library)
    chosen: Any = Heuristic(options.model) if options.model else "analytic"
    dispatcher = Dispatcher([library], device="cuda:0", selection=chosen)
    torch.manual_seed(options.seed)
    start, results = time.monotonic(), []
    for name, rows, n, k in layers(options.seed):
        for what in options.kinds.split(","):
            if time.monotonic() - start > options.seconds:
                break
            one = measure(library, dispatcher, name, what, rows, n, k, options.rounds)
            results.append(one)
            ratio = one.get("ratio", {}).get("median", float("nan"))
            pairs = " ".join(f"{pair['median']:.3f}" for pair in one["twins"].values())
            print(f"{what:16} {one['m']}x{one['n']}x{one['k']}: {ratio:.3f} [{pairs}] {one['kernel']}", flush=True)
            torch.cuda.empty_cache()
    head = {"environment": environment(options.library), "seed": options.seed, "rounds": options.rounds}
    head["selection"] = str(options.model.name) if options.model else "analytic"
    options.out.write_text(json.dumps({**head, "summary": summary(results), "results": results}, indent=1) + "\n")
    print(json.dumps(summary(results), indent=1))
    return int(any(OURS in one["unequal"] for one in results))


if __name__ == "__main__":
    sys.exit(main())
