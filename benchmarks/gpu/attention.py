"""Attention against torch's scaled_dot_product_attention on the same GPU, interleaved, on lengths that nobody tuned on.

Every round times torch's cuDNN backend, its flash backend and our kernel in turn, in bursts of about 4 ms with idle
time between; the ratio is the faster backend's time over ours within the round. Ours is a call of
``Dispatcher.attention``, which chooses the kernel among those of the library. Outputs are compared with torch's first.
Run ``python benchmarks/gpu/attention.py --library FOLDER --out result.json`` with the folder of a library and its
manifest; KERNELWRIGHT_LIBRARY names the native dispatcher.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from timing import environment
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from attention_abi import AttentionKernel
from attention_cases import TOLERANCE

from kernelwright.dispatch import AttentionProblem, Dispatcher, KernelLibrary

Call = Callable[[], object]
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
# Head dimension, heads of Q, heads of K and V, requests, length; about 16,384 rows each.
SHAPES = [
    *((128, 16, 16, 16384 // n, n) for n in (1021, 1536, 3072, 8191, 16384)),
    *((128, 32, 8, 16384 // n, n) for n in (3072, 8191)),
    *((64, 32, 32, 16384 // n, n) for n in (1021, 1536, 3072, 8191, 16384)),
    *((256, 8, 8, 16384 // n, n) for n in (1021, 1536, 3072, 8191, 16384)),
]


def milliseconds(call: Call, repeats: int) -> float:
    """Mean over a burst."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats


def interleaved(
    calls: Mapping[str, Call], rounds: int, burst_ms: float = 4.0, idle_s: float = 0.05
) -> dict[str, list[float]]:
    """Milliseconds of each call in each round."""
    repeats = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        repeats[name] = max(1, min(200, round(burst_ms / max(milliseconds(call, 2), 1e-3))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(idle_s)
            times[name].append(milliseconds(call, repeats[name]))
    return times


def launcher(kernel: AttentionKernel, asked: Any, args: Any) -> Call:
    """A launch with everything prepared in advance."""
    nbytes, plan = kernel.workspace_bytes(asked), kernel.plan(asked)
    workspace = torch.empty(nbytes + 1, device="cuda", dtype=torch.uint8)

    def call(keep: tuple[object, ...] = (plan, args, workspace)) -> None:
        kernel.launch(plan, args, torch.cuda.current_stream().cuda_stream, workspace.data_ptr(), nbytes)

    return call


def forward(dispatcher: Dispatcher, shape: tuple[int, ...], causal: bool, rounds: int) -> dict[str, Any]:
    """One line of the table."""
    hdim, hq, hk, batch, n = shape
    mask = "bottom_right" if causal else "none"
    q, k, v = (torch.randn(batch, heads, n, hdim, device="cuda").bfloat16() for heads in (hq, hk, hk))
    out = torch.full_like(q, math.nan)
    calls: dict[str, Call] = {"ours": lambda: dispatcher.attention(q, k, v, out, mask=mask, layout="bhsd")}

    def sdpa(backend: SDPBackend) -> torch.Tensor:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=hq != hk)

    for name, backend in BACKENDS.items():
        try:
            expected = sdpa(backend).double()
        except RuntimeError:
            continue  # this backend does not serve the problem
        calls[name] = lambda backend=backend: sdpa(backend)
    calls["ours"]()
    torch.cuda.synchronize()
    problem = AttentionProblem("forward", batch, hq, hk, n, n, hdim, dtype="bf16", mask=mask, layout="bhsd")
    kernel = dispatcher.plan(problem).stages[0].kernel.name
    error = float((out.double() - expected).norm() / expected.norm())
    if not error <= 2 * TOLERANCE["bf16"]:
        raise SystemExit(f"{kernel} {shape}: error {error:.1e} against torch")
    times = interleaved(calls, rounds)
    best = [min(times[name][i] for name in times if name != "ours") for i in range(rounds)]
    ratios = [theirs / ours for theirs, ours in zip(best, times["ours"], strict=True)]
    flops = 4.0 * batch * hq * n * n * hdim * (0.5 if causal else 1.0)
    tflops = {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()}
    line = {"hdim": hdim, "heads": [hq, hk], "batch": batch, "length": n, "causal": causal, "kernel": kernel}
    ratio = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return {**line, "tflops": tflops, "ratio": ratio, "error": error}


def show(line: Mapping[str, Any]) -> None:
    """Print a human-readable line."""
    speeds = "  ".join(f"{name} {value:5.0f}" for name, value in line["tflops"].items())
    mask = "causal" if line["causal"] else "full"
    ratio = line["ratio"]
    print(
        f"d{line['hdim']:<4}{line['heads'][0]:>3}/{line['heads'][1]:<3}B{line['batch']:<3}S{line['length']:<6}{mask:<7}"
        f"{speeds}  ratio {ratio['median']:.3f} [{ratio['least']:.3f}, {ratio['most']:.3f}]  error {line['error']:.1e}",
        flush=True,
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of a library and its manifest")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further problem after so many")
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device="cuda:0")
    start, lines = time.monotonic(), []
    for shape in SHAPES:
        for causal in (False, True):
            if time.monotonic() - start < options.seconds:
                lines.append(forward(dispatcher, shape, causal, options.rounds))
                show(lines[-1])
    for hdim in sorted({line["hdim"] for line in lines}):
        ratios = [line["ratio"]["median"] for line in lines if line["hdim"] == hdim]
        print(f"d{hdim}: geometric mean {statistics.geometric_mean(ratios):.3f}, worst {min(ratios):.3f}")
    if options.out:
        result = {"environment": environment(options.library), "rounds": options.rounds, "forward": lines}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
