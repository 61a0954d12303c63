"""Gradients of attention against torch's backward of scaled_dot_product_attention, interleaved as in ``attention``.

Ours are whole calls of the dispatcher's plans, with the kernels that it chooses from the library: row sums of dO * O,
gradients, conversions; with and without a fixed order of sums. Torch's are autograd.grad of a kept graph. Errors are
distances to torch's flash gradients. Means are given for shapes that the order of blocks was tuned on and for the
others. ``KERNELWRIGHT_LIBRARY`` names the dispatcher.
Run ``python benchmarks/gpu/attention_backward.py --library libattention.so --out result.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from timing import environment
from torch.nn.attention import sdpa_kernel

from attention import BACKENDS, Call, interleaved
from kernelwright.dispatch import AttentionProblem, Dispatcher, KernelLibrary

# Head dimension, heads of Q, heads of K and V, length; about 16,384 rows each.
TUNED = [(128, 16, 16, 1021), (128, 32, 8, 4096), (64, 32, 8, 1021)]
HELD_OUT = [
    *((128, 16, 16, n) for n in (1536, 3072, 8191)),
    *((128, 32, 8, n) for n in (1021, 3072, 8191)),
    *((64, 32, 32, n) for n in (1021, 3072, 8191)),
    (64, 32, 8, 3072),
]
ROWS = 16384
OURS = ("ours", "ours_deterministic")


def log_sums(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    """LSE of (requests, heads, rows, hdim), 1,024 rows of a request at a time."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    lse = torch.empty(q.shape[:3], device=q.device)
    for request in range(len(q)):
        for first in range(0, q.shape[2], 1024):
            rows = q[request, :, first : first + 1024].float()
            s = rows @ k[request].float().transpose(1, 2) * q.shape[3] ** -0.5
            if causal:
                at = torch.arange(first, first + s.shape[1], device=q.device)[:, None]
                s.masked_fill_(torch.arange(s.shape[2], device=q.device) > at, -math.inf)
            lse[request, :, first : first + 1024] = torch.logsumexp(s, -1)
    return lse


def ratio(theirs: list[float], ours: list[float]) -> float:
    """Speed of ours relative to theirs: the median over rounds."""
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def backward(dispatcher: Dispatcher, shape: tuple[int, ...], causal: bool, rounds: int) -> dict[str, Any]:
    """One line of the table; bf16."""
    hdim, hq, hk, n = shape
    batch = ROWS // n
    random = torch.Generator("cuda").manual_seed(0)
    q, k, v, d_o = (
        torch.randn(batch, heads, n, hdim, device="cuda", generator=random).bfloat16() for heads in (hq, hk, hk, hq)
    )
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    calls: dict[str, Call] = {}
    for name, backend in BACKENDS.items():
        with sdpa_kernel(backend):
            o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal, enable_gqa=hq != hk)
        calls[name] = lambda o=o: torch.autograd.grad(o, leaves, d_o, retain_graph=True)
    wanted: Any = calls["flash"]()
    kernels, errors = {}, {}
    operands = {"q": q, "k": k, "v": v, "o": o.detach().contiguous(), "do": d_o, "lse": log_sums(q, k, causal)}
    for name, deterministic in zip(OURS, (False, True), strict=True):
        problem = AttentionProblem(
            "backward", batch, hq, hk, n, n, hdim, dtype="bf16", layout="bhsd", deterministic=deterministic,
            mask="bottom_right" if causal else "none",
        )  # fmt: skip
        plan = dispatcher.plan(problem)
        results = {name: torch.full_like(t, math.nan) for name, t in (("dq", q), ("dk", k), ("dv", v))}
        calls[name] = plan.bind(**operands, **results)
        calls[name]()
        torch.cuda.synchronize()
        kernels[name] = [stage.kernel.name for stage in plan.stages]
        errors[name] = [
            float((a.double() - b.double()).norm() / b.double().norm())
            for a, b in zip(results.values(), wanted, strict=True)
        ]
    times = interleaved(calls, rounds)
    flops = 10.0 * batch * hq * n * n * hdim * (0.5 if causal else 1.0)
    tflops = {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()}
    ratios = {ours: {name: ratio(times[name], times[ours]) for name in BACKENDS} for ours in kernels}
    line = {"hdim": hdim, "heads": [hq, hk], "batch": batch, "length": n, "causal": causal, "tuned": shape in TUNED}
    return {**line, "tflops": tflops, "ratios": ratios, "errors": errors, "kernels": kernels}


def means(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric mean and minimum of the ratios to each backend, for tuned shapes and for the others."""
    summaries: dict[str, Any] = {}
    for kind, tuned in (("held out", False), ("tuned", True)):
        of_kind = [line["ratios"] for line in lines if line["tuned"] is tuned]
        for ours in OURS:
            for name in BACKENDS:
                of = [ratios[ours][name] for ratios in of_kind]
                if of:
                    mean = {"geometric_mean": statistics.geometric_mean(of), "least": min(of), "lines": len(of)}
                    summaries[f"{kind}: {ours} / {name}"] = mean
    return summaries


def show(line: dict[str, Any]) -> None:
    """Print a human-readable line: TFLOP/s and ratios to cuDNN and flash."""
    mask = "causal" if line["causal"] else "full"
    heads = "{}/{}".format(*line["heads"])
    text = f"d{line['hdim']:<4}{heads:<6}B{line['batch']:<3}S{line['length']:<6}{mask:<7}{'tuned' * line['tuned']:<6}"
    for ours in OURS:
        ratios = "  ".join(f"{name} {ratio:.2f}" for name, ratio in line["ratios"][ours].items())
        text += f"  {ours} {line['tflops'][ours]:4.0f}: {ratios}"
    worst = max(max(errors) for errors in line["errors"].values())
    print(f"{text}  error {worst:.1e}", flush=True)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further problem after so many")
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library.parent)], device="cuda:0")
    start, lines = time.monotonic(), []
    for shape in (*TUNED, *HELD_OUT):
        for causal in (False, True):
            if time.monotonic() - start < options.seconds:
                lines.append(backward(dispatcher, shape, causal, options.rounds))
                show(lines[-1])
    for name, mean in means(lines).items():
        print(f"{name}: {mean['geometric_mean']:.3f}, least {mean['least']:.3f} of {mean['lines']}")
    if options.out:
        whole = {"environment": environment(options.library.parent), "rounds": options.rounds, "means": means(lines)}
        whole["backward"] = lines
        options.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
