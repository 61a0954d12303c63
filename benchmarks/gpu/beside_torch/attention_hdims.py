"""Attention with padded head dimensions, and what is added to scores, on a GPU against torch's, interleaved, as JSON.

Forward and gradients of prompts with head dimensions that kernels are not built for (32, 72, 80, 96, 192 and 128),
kernels chosen by the dispatcher, against the fastest backend of ``scaled_dot_product_attention`` that takes the
problem. Outputs are compared with float64 on one head. Ratios are torch ÷ ours: above 1 we are faster.

    python benchmarks/gpu/beside_torch/attention_hdims.py --library .gpu/attention --out result.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path += map(str, Path(__file__).resolve().parents[1:3])

import torch
from results_file import text
from timing import capture, environment, interleaved
from torch.nn.attention import SDPBackend, sdpa_kernel

from kernelwright.dispatch import Dispatcher, KernelLibrary

HEAD_DIMENSIONS = ((32, 32), (72, 72), (80, 80), (96, 96), (192, 128), (256, 256))
LENGTHS = ((2, 2048), (1, 8000))
BACKENDS = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION)  # the third one is slower everywhere
HEADS, CALLS = 16, 5


def theirs(q: Any, k: Any, v: Any, d_o: Any, causal: bool, backward: bool) -> dict[str, Any]:
    """torch's calls by backend; backends that refuse the problem are omitted."""
    graphs = {}
    for backend in BACKENDS:

        def call(_: int, backend: Any = backend) -> None:
            with sdpa_kernel(backend):
                o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                if backward:
                    torch.autograd.grad(o, (q, k, v), d_o)

        try:
            graphs[backend.name] = capture(call, CALLS)
        except RuntimeError:
            torch.cuda.synchronize()
    return graphs


def measured(
    dispatcher: Any, hdims: tuple[int, int], batch: int, rows: int, causal: bool, dtype: Any
) -> dict[str, Any]:
    """One prompt, forward and gradients."""
    draw = lambda hdim: torch.randn(batch, rows, HEADS, hdim, device="cuda").to(dtype)  # noqa: E731
    q, k, v, d_o = draw(hdims[0]), draw(hdims[0]), draw(hdims[1]), draw(hdims[1])
    mask = "bottom_right" if causal else "none"
    o, lse = dispatcher.attention(q, k, v, mask=mask, lse=True)
    out = torch.full_like(o, float("nan"))
    dq, dk, dv = (torch.full_like(one, float("nan")) for one in (q, k, v))

    def forward(_: int) -> None:
        dispatcher.attention(q, k, v, out=out, mask=mask)

    def backward(_: int) -> None:
        dispatcher.attention_backward(q, k, v, o, d_o, lse, dq=dq, dk=dk, dv=dv, mask=mask)

    row: dict[str, Any] = {"hdims": hdims, "batch": batch, "rows": rows, "causal": causal, "dtype": str(dtype)}
    heads_first = [one.transpose(1, 2).detach() for one in (q, k, v, d_o)]
    for name, call, back in (("forward", forward, False), ("backward", backward, True)):
        leaves = [one.clone().requires_grad_(back) for one in heads_first[:3]]
        graphs = {"ours": capture(call, CALLS), **theirs(*leaves, heads_first[3], causal, back)}
        times = {who: min(spent) for who, spent in interleaved(graphs, CALLS, 5).items()}
        best = min((spent for who, spent in times.items() if who != "ours"), default=None)
        if back and best is not None:  # theirs include the forward pass, so ours is added
            times["ours"] += row["forward"]["ours"]
        row[name] = {
            **{who: round(spent, 2) for who, spent in times.items()},
            "ratio": best and round(best / times["ours"], 3),
        }
    wide = [one[:1, :1].double().requires_grad_() for one in heads_first]
    exact = torch.nn.functional.scaled_dot_product_attention(*wide[:3], is_causal=causal)
    wanted = [exact, *torch.autograd.grad(exact, wide[:3], wide[3])]
    got = [one[:1, :, :1].transpose(1, 2).double() for one in (out, dq, dk, dv)]
    row["errors"] = [float((a - b).norm() / b.norm()) for a, b in zip(got, wanted, strict=True)]
    return row


def main() -> int:
    """Measure. Returns 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device="cuda:0")
    rows = []
    for hdims in HEAD_DIMENSIONS:
        for batch, length in LENGTHS:
            for causal in (False, True):
                row = measured(dispatcher, hdims, batch, length, causal, torch.bfloat16)
                rows.append(row)
                print(hdims, batch, length, causal, row["forward"], row["backward"], max(row["errors"]), flush=True)
    options.out.write_text(text({"environment": environment(options.library)}, rows))
    return 0 if all(max(row["errors"]) < 1e-2 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
