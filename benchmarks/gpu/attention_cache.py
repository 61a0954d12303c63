"""Decode, append and paged prefill on a GPU: bytes per second beside a copy's, and speed beside cuDNN's, interleaved.

Operands rotate through more memory than L2 has. Decode reads K and V once: its figure is those bytes by the time of
both launches, where there are two. cuDNN gets contiguous K and V.
Run ``python benchmarks/gpu/attention_cache.py --library libattention.so --out result.json``.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from timing import environment
from torch.nn.attention import sdpa_kernel

from attention import BACKENDS, interleaved, launcher

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from attention_abi import COMBINE, AppendArgs, AppendProblem, AttentionKernel, Strides, kernels
from attention_caches import LIST, paged
from attention_cases import Case, args_of, operands, problem_of
from raw_abi import DTYPES

COLD_BYTES = 300_000_000
DECODE = [(1, 8192), (1, 65536), (4, 8192), (4, 65536), (16, 8192), (16, 32768), (64, 8192), (33, 12345)]
PREFILL = [(16, 1021), (5, 3072), (2, 8191), (1, 16384)]
SMS = 132


def decode(all_kernels: list[AttentionKernel], batch: int, length: int, rounds: int) -> dict[str, Any]:
    """bf16, head dimension 128, 32 heads of Q and 8 of K and V, pages of 16."""
    hq, hk, hdim = 32, 8, 128
    blocks = batch * hk
    splits = max(1, min(2 * SMS // blocks, length // 128))
    case = Case((1,) * batch, (length,) * batch, (hq, hk), group=True, lse=False)
    nbytes = 2 * batch * length * hk * hdim * 2
    sets = max(1, -(-COLD_BYTES // nbytes))
    calls: list[Callable[[], object]] = []
    for seed in range(sets):
        x = operands(case, "bf16", (hdim, hdim), seed)
        asked, args = problem_of(case, "bf16", x), args_of(case, x)
        pages = paged(case, x, LIST, 16, seed % 2 == 1, seed)
        pages.pose(asked, args)
        asked.num_splits, asked.leaves_splits = splits, int(splits > 1)
        partial = torch.empty(splits, batch * hq, hdim, device="cuda")
        lse = torch.empty(splits, batch * hq, device="cuda")
        args.o_splits, args.lse_splits = partial.data_ptr(), lse.data_ptr()
        kernel = next(one for one in all_kernels if one.traits.family == 2 and not one.supports(asked))
        stages = [launcher(kernel, asked, args)]
        if splits > 1:
            after = type(asked).from_buffer_copy(asked)
            after.op, after.leaves_splits, after.page_table, after.kv_lengths = COMBINE, 0, 0, 0
            combine = next(one for one in all_kernels if one.descriptor.op == COMBINE and not one.supports(after))
            stages.append(launcher(combine, after, args))
        x.k = x.v = torch.empty(0)
        calls.append(lambda stages=stages, keep=(x, pages, partial, lse): [stage() for stage in stages])
    source, target = (torch.empty(1 << 30, device="cuda", dtype=torch.uint8) for _ in range(2))
    times = interleaved({"ours": rotating(calls), "copy": lambda: target.copy_(source)}, rounds)
    ours = nbytes / statistics.median(times["ours"]) / 1e6
    copy = 2 * source.numel() / statistics.median(times["copy"]) / 1e6
    return {
        "batch": batch,
        "length": length,
        "splits": splits,
        "gbytes_per_s": ours,
        "copy": copy,
        "ratio": ours / copy,
    }


def rotating(calls: list[Callable[[], object]]) -> Callable[[], object]:
    """Each of the calls in turn, from graphs: a launch costs the host more than some of them take."""
    graphs = []
    for call in calls:
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        graphs.append(graph)
    turn: Iterator[int] = itertools.count()
    return lambda: graphs[next(turn) % len(graphs)].replay()


def prefill(all_kernels: list[AttentionKernel], batch: int, length: int, causal: bool, rounds: int) -> dict[str, Any]:
    """bf16, head dimension 128, 16 heads, pages of 16 against cuDNN on contiguous K and V."""
    window = (-1, 0) if causal else (-1, -1)
    mask = "bottom_right" if causal else "none"
    case = Case((length,) * batch, (length,) * batch, (16, 16), True, mask, window, lse=False)
    x = operands(case, "bf16", (128, 128))
    asked, args = problem_of(case, "bf16", x), args_of(case, x)
    pages = paged(case, x, LIST, 16, False)
    pages.pose(asked, args)
    serving = [one for one in all_kernels if one.traits.family == 4 and not one.supports(asked)]
    kernel = min(serving, key=lambda one: bool(one.traits.masks & 8))
    q, k, v = (t.view(batch, length, 16, 128).transpose(1, 2) for t in (x.q, x.k, x.v))

    def cudnn() -> torch.Tensor:
        with sdpa_kernel(BACKENDS["cudnn"]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    ours = launcher(kernel, asked, args)
    ours()
    expected = cudnn().transpose(1, 2).reshape(x.o.shape).double()
    error = float((x.o.double() - expected).norm() / expected.norm())
    times = interleaved({"ours": ours, "cudnn": cudnn}, rounds)
    ratios = [theirs / own for theirs, own in zip(times["cudnn"], times["ours"], strict=True)]
    flops = 4.0 * batch * 16 * length * length * 128 * (0.5 if causal else 1.0)
    tflops = flops / statistics.median(times["ours"]) / 1e9
    ratio = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return {"batch": batch, "length": length, "causal": causal, "tflops": tflops, "ratio": ratio, "error": error}


def append(all_kernels: list[AttentionKernel], rows: int, rounds: int) -> dict[str, Any]:
    """64 requests append rows to pages of 16: read and written once each; with a rotary embedding where it has one."""
    batch, hk, hq, hdim, size = 64, 8, 32, 128, 16
    new = rows // batch
    found = {}
    for kernel in all_kernels:
        if kernel.traits.family != 6 or kernel.traits.hdim_q != hdim:
            continue
        rope = next(kind for kind in (0, 1, 2) if kernel.traits.ropes >> kind & 1)
        pages = -(-new // size)
        q = torch.randn(batch, new, hq, hdim, device="cuda").bfloat16()
        k, v = (torch.randn(batch, new, hk, hdim, device="cuda").bfloat16() for _ in "kv")
        caches = [torch.empty(batch * pages, size, hk, hdim, device="cuda", dtype=torch.bfloat16) for _ in "kv"]
        table = torch.randperm(batch * pages, device="cuda").view(batch, pages).int()
        angle = torch.rand(new, hdim // 2, device="cuda")
        pointers = (
            q,
            q,
            k,
            v,
            *caches,
            torch.zeros(batch, device="cuda", dtype=torch.int32),
            table,
            angle.cos().bfloat16(),
            angle.sin().bfloat16(),
        )
        p = AppendProblem(ctypes.sizeof(AppendProblem), 36, 1, DTYPES["bf16"])
        turns = int(rope > 0)
        p.dtype_rotary, p.rope, p.rotates_q, p.page_table = DTYPES["bf16"] * turns, rope, turns, 1
        p.batch, p.heads_q, p.heads_kv, p.hdim_q, p.hdim_v = batch, hq * turns, hk, hdim, hdim
        p.seqlen_q, p.seqlen_new, p.capacity = new * turns, new, pages * size
        p.pages, p.page_size, p.page_table_stride = batch * pages, size, pages
        p.rotary_dim, p.rotary_places = hdim * turns, new * turns
        for name, tensor in (
            ("q", q),
            ("q_out", q),
            ("k", k),
            ("v", v),
            ("k_cache", caches[0]),
            ("v_cache", caches[1]),
        ):
            setattr(p, name, Strides(tensor.stride(0), tensor.stride(2), tensor.stride(1)))
        args = AppendArgs(ctypes.sizeof(AppendArgs), 0, *(tensor.data_ptr() for tensor in pointers))
        nbytes = 2 * 2 * (k.numel() + v.numel() + q.numel() * turns)
        times = interleaved({"ours": launcher(kernel, p, args)}, rounds)["ours"]
        found[f"rope {rope}"] = nbytes / statistics.median(times) / 1e6
        del pointers
    return {"rows": rows, "gbytes_per_s": found}


def text(line: dict[str, Any]) -> str:
    """A line for people."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in line.items()}
    return "  ".join(f"{name} {value}" for name, value in texts.items())


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = [kernel for library in options.library for kernel in kernels(library)]
    result: dict[str, Any] = {"decode": [], "prefill": [], "append": []}
    for batch, length in DECODE:
        result["decode"].append(decode(found, batch, length, options.rounds))
        print("decode", text(result["decode"][-1]), flush=True)
    for batch, length in PREFILL:
        for causal in (False, True):
            result["prefill"].append(prefill(found, batch, length, causal, options.rounds))
            print("paged prefill", text(result["prefill"][-1]), flush=True)
    for rows in (64, 65536):
        result["append"].append(append(found, rows, options.rounds))
        print("append", text(result["append"][-1]), flush=True)
    if options.out:
        options.out.write_text(
            json.dumps({"environment": environment(options.library[0].parent), **result}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
