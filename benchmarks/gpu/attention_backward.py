"""Gradients of attention against torch's backward of scaled_dot_product_attention, interleaved as in ``attention``.

Ours are the row sums of dO * O and the gradients, two launches of stages; torch's are autograd.grad of a kept graph.
Run ``python benchmarks/gpu/attention_backward.py --library libattention.so --out result.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from timing import environment
from torch.nn.attention import sdpa_kernel

from attention import BACKENDS, interleaved, launcher

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from attention_abi import AttentionKernel, kernels, strides
from attention_cases import Case, args_of, operands, problem_of

DOT, GRADIENTS = 37, 38
SHAPES = [(128, 16, 16, 16384 // n, n) for n in (1021, 3072, 8191)] + [(64, 32, 32, 5, 3072)]


def backward(found: list[AttentionKernel], shape: tuple[int, ...], causal: bool, rounds: int) -> dict[str, Any]:
    """One line of the table; bf16."""
    hdim, hq, hk, batch, n = shape
    mask, window = ("bottom_right", (-1, 0)) if causal else ("none", (-1, -1))
    case = Case((n,) * batch, (n,) * batch, (hq, hk), mask=mask, window=window, heads_first=True)
    x = operands(case, "bf16", (hdim, hdim))
    d_o = torch.randn_like(x.q)
    leaves = [t.detach().requires_grad_() for t in (x.q, x.k, x.v)]
    calls, gradients = {}, None
    for name, backend in BACKENDS.items():
        with sdpa_kernel(backend):
            o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
        calls[name] = lambda o=o: torch.autograd.grad(o, leaves, d_o, retain_graph=True)
        gradients = calls[name]()
        x.o.copy_(o.detach())
    s = x.q.float() @ x.k.float().transpose(2, 3) if n <= 4096 else None
    if s is not None:
        s *= hdim**-0.5
        if causal:
            s += torch.full((n, n), -torch.inf, device="cuda").triu(1)
        x.lse.copy_(torch.logsumexp(s, -1))
    else:  # a chunk of rows at a time
        for first in range(0, n, 1024):
            part = x.q[:, :, first : first + 1024].float() @ x.k.float().transpose(2, 3) * hdim**-0.5
            if causal:
                rows = torch.arange(first, first + part.shape[2], device="cuda")[:, None]
                part.masked_fill_(torch.arange(n, device="cuda") > rows, -torch.inf)
            x.lse[:, :, first : first + 1024] = torch.logsumexp(part, -1)
    del s
    found_gradients = [torch.empty_like(t) for t in (x.q, x.k, x.v)]
    d = torch.empty_like(x.lse)
    asked, args = problem_of(case, "bf16", x), args_of(case, x)
    asked.lse, args.d = 0, d.data_ptr()
    for name, tensor in zip(("d_o", "dq", "dk", "dv"), (d_o, *found_gradients), strict=True):
        setattr(asked, name, strides(tensor, "bhs"))
        setattr(args, name, tensor.data_ptr())
    stages = []
    for op in (DOT, GRADIENTS):
        one = type(asked).from_buffer_copy(asked)
        one.op = op
        stages.append(launcher(next(k for k in found if k.descriptor.op == op and not k.supports(one)), one, args))
    calls["ours"] = lambda: [stage() for stage in stages]
    calls["ours"]()
    torch.cuda.synchronize()
    errors = [
        float((a.double() - b.double()).norm() / b.double().norm())
        for a, b in zip(found_gradients, gradients or (), strict=True)
    ]
    times = interleaved(calls, rounds)
    flops = 10.0 * batch * hq * n * n * hdim * (0.5 if causal else 1.0)
    tflops = {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()}
    ratios = {name: tflops["ours"] / tflops[name] for name in BACKENDS}
    line = {"hdim": hdim, "heads": [hq, hk], "batch": batch, "length": n, "causal": causal}
    return {**line, "tflops": tflops, "ratios": ratios, "errors": errors}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = [kernel for library in options.library for kernel in kernels(library)]
    lines = []
    for shape in SHAPES:
        for causal in (False, True):
            lines.append(backward(found, shape, causal, options.rounds))
            print(lines[-1], flush=True)
    if options.out:
        whole = {"environment": environment(options.library[0].parent), "backward": lines}
        options.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
