"""Attention, kernels chosen by the dispatcher, against torch's scaled_dot_product_attention, interleaved, as JSON.

Forward: full and causal, each head of K and V for one head of Q or (GQA) for four, 512 to 4096 tokens and lengths that
no block divides; decode: one query of each of 8 requests against 4096 keys; backward: gradients of Q, K and V from what
the forward pass kept, whole calls on both sides. Both sides read the same tensors, heads outside of rows, and write new
ones. Results are compared first, to the accuracy of the type.

Processors change their clock and share their caches with whatever else runs, so calls take turns in every round; a
round counts the least time of each call, ratios (torch ÷ ours: above 1 we are faster) are taken within a round, and
medians over the rounds are reported, with the smallest and the largest.

    ./pants package kernels/attention:cpu_attention
    python benchmarks/cpu/attention.py --library dist/kernels/attention/cpu_attention --threads 2 --out result.json

``--library`` is what KernelLibrary.load_for takes. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is
installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from ratios import geometric_mean, ratios
from results_file import text

Call = Callable[[], Any]
HEADS = {512: 16, 1024: 8, 2048: 4, 4096: 2}
ODD = {509: 16, 1531: 4, 3072: 2}
TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


@dataclass(frozen=True)
class Shape:
    """One problem: a pass, lengths and heads."""

    kind: str
    dtype: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    hdim: int
    causal: bool

    @property
    def flops(self) -> float:
        """Multiplications and additions of the products; causal masks halve the scores."""
        products = {"forward": 2, "decode": 2, "backward": 5}[self.kind]
        part = 0.5 if self.causal else 1.0
        return 2.0 * products * self.batch * self.heads * self.queries * self.keys * self.hdim * part


def shapes(kinds: Sequence[str], dtypes: Sequence[str]) -> Iterator[Shape]:
    """Every problem, the small ones first."""
    for dtype in dtypes:
        for hdim in (64, 128, 256):
            if "forward" in kinds:
                for length, heads in {**HEADS, **ODD}.items():
                    for causal in (False, True):
                        yield Shape("forward", dtype, 1, heads, heads, length, length, hdim, causal)
                yield Shape("forward", dtype, 1, 8, 2, 1024, 1024, hdim, True)
            if "decode" in kinds:
                yield Shape("decode", dtype, 8, 8, 8, 1, 4096, hdim, False)
                yield Shape("decode", dtype, 8, 16, 2, 1, 4096, hdim, False)
            if "backward" in kinds:
                for length in (512, 1024, 2048):
                    yield Shape("backward", dtype, 1, HEADS[length], HEADS[length], length, length, hdim, True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line for each problem and the geometric means, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kinds", nargs="+", default=["forward", "decode", "backward"])
    parser.add_argument("--dtypes", nargs="+", default=list(TOLERANCE), choices=list(TOLERANCE))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when torch is loaded

    import machine
    import torch

    from kernelwright.dispatch import Dispatcher, KernelLibrary

    torch.set_num_threads(options.threads)
    dispatcher = Dispatcher(KernelLibrary.load_for("cpu", options.library))
    dispatcher.set_num_threads(options.threads)
    results = []
    for shape in shapes(options.kinds, options.dtypes):
        ours, theirs = calls(dispatcher, shape)
        compare(ours(), theirs(), shape)
        least = seconds({"ours": ours, "torch": theirs}, options.rounds)
        speedups = ratios(least["torch"], least["ours"])
        rates = {name: round(1e-9 * shape.flops / statistics.median(values), 1) for name, values in least.items()}
        spread = [round(value, 3) for value in (statistics.median(speedups), min(speedups), max(speedups))]
        results.append({**asdict(shape), "gflops": rates, "ratio": spread})
        print(f"{shape} GFLOP/s {rates}; ratio {spread}", flush=True)
    means = {
        f"{kind} {dtype}": figures([r for r in results if (r["kind"], r["dtype"]) == (kind, dtype)])
        for kind in options.kinds
        for dtype in options.dtypes
    }
    print(json.dumps(means, indent=1))
    report = {"machine": machine.describe(torch=torch.__version__), "threads": options.threads, "torch ÷ ours": means}
    if options.out:
        options.out.write_text(text(report, results))


def figures(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The geometric mean and the worst of the ratios over all problems."""
    speedups = [result["ratio"][0] for result in results]
    return {"geometric_mean": round(geometric_mean(speedups), 3), "worst": min(speedups)}


def calls(dispatcher: Any, shape: Shape) -> tuple[Call, Call]:
    """Our call and torch's."""
    import torch

    generator = torch.Generator().manual_seed(0)

    def tensor(heads: int, rows: int) -> Any:
        made = torch.randn(shape.batch, heads, rows, shape.hdim, generator=generator)
        return made.to(getattr(torch, shape.dtype)).requires_grad_(shape.kind == "backward")

    q, k, v = (
        tensor(shape.heads, shape.queries),
        tensor(shape.kv_heads, shape.keys),
        tensor(shape.kv_heads, shape.keys),
    )
    mask = "top_left" if shape.causal else "none"

    def theirs() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=shape.causal, enable_gqa=shape.heads != shape.kv_heads
        )

    if shape.kind != "backward":
        return (lambda: dispatcher.attention(q, k, v, layout="bhsd", mask=mask)), theirs
    out = theirs()
    gradient = torch.randn(out.shape, generator=generator).to(out.dtype)
    plain = [each.detach() for each in (q, k, v)]
    kept, lse = dispatcher.attention(*plain, layout="bhsd", mask=mask, lse=True)
    return (
        lambda: dispatcher.attention_backward(*plain, kept, gradient, lse, layout="bhsd", mask=mask),
        lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True),
    )


def compare(ours: Any, theirs: Any, shape: Shape) -> None:
    """Raise ValueError if results differ by more than the type's accuracy."""
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (ours, theirs)), strict=True):
        error = float((one.float() - other.float()).abs().max())
        if not error <= TOLERANCE[shape.dtype] * max(1.0, float(other.float().abs().max())):
            raise ValueError(f"{shape}: results differ by {error}")


def seconds(asked: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """The minimum time of each call in every round, in which calls take turns."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        least = dict.fromkeys(asked, float("inf"))
        for _ in range(3):
            for name, call in asked.items():
                begin = time.perf_counter()
                call()
                least[name] = min(least[name], time.perf_counter() - begin)
        for name, value in least.items():
            times[name].append(value)
    return times


if __name__ == "__main__":
    main()
