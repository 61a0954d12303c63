"""Decode, append and paged prefill on a GPU: bytes per second beside a copy's, and speed beside cuDNN's, interleaved.

Calls are ``Dispatcher.decode``, ``append_kv`` and ``prefill``, which choose kernels and splits; decode is replayed from
CUDA graphs. Operands of decode rotate through more memory than L2 has. Decode reads K and V once: its figure is those
bytes by the time of both launches, where there are two. cuDNN gets contiguous K and V.
Run ``python benchmarks/gpu/attention_cache.py --library FOLDER --out result.json``, as attention.py says.
"""

from __future__ import annotations

import argparse
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

from attention import BACKENDS, interleaved

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from attention_caches import LIST, paged
from attention_cases import Case, operands

from kernelwright.dispatch import AttentionProblem, Dispatcher, KernelLibrary

COLD_BYTES = 300_000_000
DECODE = [(1, 8192), (1, 65536), (4, 8192), (4, 65536), (16, 8192), (16, 32768), (64, 8192), (33, 12345)]
PREFILL = [(16, 1021), (5, 3072), (2, 8191), (1, 16384)]
PAGE = 16


def copy_call() -> Callable[[], object]:
    """A copy of 1 GiB, and the bytes that it moves."""
    source, target = (torch.empty(1 << 30, device="cuda", dtype=torch.uint8) for _ in range(2))
    return lambda: target.copy_(source)


COPIED = 2 << 30


def beside_copy(call: Callable[[], object], nbytes: int, rounds: int) -> dict[str, Any]:
    """GB/s of a call and of a copy, and their ratio in each round."""
    times = interleaved({"ours": call, "copy": copy_call()}, rounds)
    ratios = [nbytes / ours / (COPIED / copy) for ours, copy in zip(times["ours"], times["copy"], strict=True)]
    return {
        "gbytes_per_s": nbytes / statistics.median(times["ours"]) / 1e6,
        "copy": COPIED / statistics.median(times["copy"]) / 1e6,
        "ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)},
    }


def decode(dispatcher: Dispatcher, batch: int, length: int, rounds: int) -> dict[str, Any]:
    """Decode in bf16, head dimension 128, 32 heads of Q and 8 of K and V, pages of 16."""
    hq, hk, hdim = 32, 8, 128
    case = Case((1,) * batch, (length,) * batch, (hq, hk), group=True, lse=False)
    nbytes = 2 * batch * length * hk * hdim * 2
    calls: list[Callable[[], object]] = []
    for seed in range(max(1, -(-COLD_BYTES // nbytes))):
        x = operands(case, "bf16", (hdim, hdim), seed)
        heads_first = seed % 2 == 1
        pages = paged(case, x, LIST, PAGE, heads_first, seed)
        q, out = (t.view(batch, 1, hq, hdim) for t in (x.q, x.o))
        options = {
            "page_table": pages.table, "page_indptr": pages.indptr, "last_page_lengths": pages.last,
            "max_seqlen_k": length, "cache_layout": "bhsd" if heads_first else "bshd", "own_workspace": True,
        }  # fmt: skip
        keep = (q, out, pages.k, pages.v, options)
        x.k = x.v = torch.empty(0)
        calls.append(lambda keep=keep: dispatcher.decode(keep[0], keep[2], keep[3], None, keep[1], **keep[4]))
    problem = AttentionProblem(
        "forward", batch, hq, hk, 1, length, hdim, dtype="bf16", page_table="list", page_size=PAGE, pages=len(pages.k)
    )
    chosen = dispatcher.plan(problem).choices
    line = beside_copy(rotating(calls), nbytes, rounds)
    return {"batch": batch, "length": length, "choices": chosen, **line}


def rotating(calls: list[Callable[[], object]]) -> Callable[[], object]:
    """Launch each of the calls in turn, from graphs: some take less time than a launch costs the host."""
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


def prefill(
    dispatcher: Dispatcher, batch: int, length: int, causal: bool, rounds: int, page: int = PAGE
) -> dict[str, Any]:
    """Paged prefill in bf16, head dimension 128, 16 heads, against cuDNN on contiguous K and V."""
    window = (-1, 0) if causal else (-1, -1)
    mask = "bottom_right" if causal else "none"
    case = Case((length,) * batch, (length,) * batch, (16, 16), True, mask, window, lse=False)
    x = operands(case, "bf16", (128, 128))
    pages = paged(case, x, LIST, page, False)
    q, k, v = (t.view(batch, length, 16, 128).transpose(1, 2) for t in (x.q, x.k, x.v))
    table = {"page_table": pages.table, "page_indptr": pages.indptr, "last_page_lengths": pages.last}

    def ours() -> torch.Tensor:
        return dispatcher.prefill(
            x.q, pages.k, pages.v, x.cu_q, length, None, x.o, mask=mask, max_seqlen_k=length, **table
        )

    def cudnn() -> torch.Tensor:
        with sdpa_kernel(BACKENDS["cudnn"]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    ours()
    expected = cudnn().transpose(1, 2).reshape(x.o.shape).double()
    error = float((x.o.double() - expected).norm() / expected.norm())
    times = interleaved({"ours": ours, "cudnn": cudnn}, rounds)
    ratios = [theirs / own for theirs, own in zip(times["cudnn"], times["ours"], strict=True)]
    flops = 4.0 * batch * 16 * length * length * 128 * (0.5 if causal else 1.0)
    tflops = {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()}
    ratio = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    line = {"batch": batch, "length": length, "causal": causal, "page": page}
    return {**line, "tflops": tflops, "ratio": ratio, "error": error}


def append(dispatcher: Dispatcher, rows: int, rotary: bool, rounds: int) -> dict[str, Any]:
    """64 requests append rows to pages of 16, with or without rotary embedding: each row read and written once."""
    batch, hk, hq, hdim = 64, 8, 32, 128
    new = rows // batch
    pages = -(-new // PAGE)
    k, v = (torch.randn(batch, new, hk, hdim, device="cuda").bfloat16() for _ in "kv")
    caches = [torch.full((batch * pages, PAGE, hk, hdim), torch.nan, device="cuda").bfloat16() for _ in "kv"]
    options: dict[str, Any] = {
        "page_table": torch.randperm(batch * pages, device="cuda").view(batch, pages).int(),
        "own_workspace": True,
    }
    if rotary:
        angle = torch.rand(new, hdim // 2, device="cuda")
        q = torch.randn(batch, new, hq, hdim, device="cuda").bfloat16()
        options |= {"q": q, "q_out": torch.empty_like(q)}
        options |= {"cos": angle.cos().bfloat16(), "sin": angle.sin().bfloat16()}
    before = torch.zeros(batch, device="cuda", dtype=torch.int32)
    nbytes = 2 * 2 * (k.numel() + v.numel() + (options["q"].numel() if rotary else 0))
    line = beside_copy(rotating([lambda: dispatcher.append_kv(k, v, *caches, before, **options)]), nbytes, rounds)
    written = caches[1][options["page_table"].long()].reshape(batch, -1, hk, hdim)[:, :new]
    if not torch.equal(written, v):
        raise SystemExit(f"append of {rows} rows: the cache does not hold V")
    return {"rows": rows, "rotary": rotary, **line}


def text(line: dict[str, Any]) -> str:
    """A human-readable line."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in line.items()}
    texts["ratio"] = "{median:.3f} [{least:.3f}, {most:.3f}]".format(**line["ratio"])
    return "  ".join(f"{name} {value}" for name, value in texts.items())


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of a library and its manifest")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device="cuda:0")
    result: dict[str, Any] = {"decode": [], "prefill": [], "append": []}
    for batch, length in DECODE:
        result["decode"].append(decode(dispatcher, batch, length, options.rounds))
        print("decode", text(result["decode"][-1]), flush=True)
    for (batch, length), page in [*((shape, PAGE) for shape in PREFILL), ((2, 8191), 64), ((2, 8191), 256)]:
        for causal in (False, True):
            result["prefill"].append(prefill(dispatcher, batch, length, causal, options.rounds, page))
            print("paged prefill", text(result["prefill"][-1]), flush=True)
    for rows in (64, 65536):
        for rotary in (False, True):
            result["append"].append(append(dispatcher, rows, rotary, options.rounds))
            print("append", text(result["append"][-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"environment": environment(options.library), **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
