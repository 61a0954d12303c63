"""Times of attention kernels on shapes for tuning: what the estimates of the dispatcher's selection are fitted to.

Decode: each number of splits, with its combination, from CUDA graphs on operands that rotate through more memory than
L2 has. Forward and paged prefill: every kernel that serves a problem. No shape is one of those that benchmarks/gpu
reports. Run ``python benchmarks/attention/measure.py --library libattention.so --out tuning.json`` on a GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import torch
from attention_abi import COMBINE, AttentionKernel, kernels
from attention_cache import COLD_BYTES, rotating
from attention_caches import LIST, paged
from attention_cases import Case, args_of, operands, problem_of
from timing import environment

from attention import interleaved, launcher

# Requests, heads of Q, heads of K and V, keys, head dimension.
DECODE = [
    (1, 32, 8, 4096, 128),
    (1, 32, 8, 20000, 128),
    (1, 32, 8, 50000, 128),
    (1, 16, 2, 30000, 128),
    (1, 8, 8, 100000, 128),
    (2, 32, 8, 12000, 128),
    (3, 32, 8, 40000, 128),
    (6, 32, 8, 10000, 128),
    (12, 32, 8, 5000, 128),
    (24, 32, 8, 9000, 128),
    (1, 64, 8, 30000, 64),
    (5, 32, 8, 14000, 64),
]
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 33, 48, 66, 132)
# Requests, heads of Q, heads of K and V, queries, keys, head dimension.
FORWARD = [
    *((8192 // n, 4096 // hdim, 4096 // hdim, n, n, hdim) for hdim in (64, 128, 256) for n in (512, 1280, 4096)),
    *((8, 32, 8, rows, 4096, hdim) for hdim in (64, 128) for rows in (4, 16, 64, 256)),
]
MOST_BLOCKS = 2200
WINDOWS = {"none": ("none", (-1, -1)), "causal": ("bottom_right", (-1, 0)), "window": ("bottom_right", (700, 0))}


def decode(candidates: list[AttentionKernel], shape: tuple[int, ...], rounds: int) -> dict[int, float]:
    """Milliseconds of both stages by number of splits."""
    batch, hq, hk, length, hdim = shape
    case = Case((1,) * batch, (length,) * batch, (hq, hk), group=True, lse=False)
    partial = torch.empty(max(SPLITS), batch * hq, hdim, device="cuda")
    lse = torch.empty(max(SPLITS), batch * hq, device="cuda")
    sets = []
    for seed in range(max(1, -(-COLD_BYTES // (4 * batch * length * hk * hdim)))):
        x = operands(case, "bf16", (hdim, hdim), seed)
        asked, args = problem_of(case, "bf16", x), args_of(case, x)
        pages = paged(case, x, LIST, 16, False, seed)
        pages.pose(asked, args)
        args.o_splits, args.lse_splits = partial.data_ptr(), lse.data_ptr()
        x.k = x.v = torch.empty(0)
        sets.append((asked, args, x, pages))

    def call(splits: int, asked: Any, args: Any) -> Callable[[], object]:
        asked.num_splits, asked.leaves_splits = splits, int(splits > 1)
        stages = [
            launcher(next(one for one in candidates if one.traits.family == 2 and not one.supports(asked)), asked, args)
        ]
        if splits > 1:
            after = type(asked).from_buffer_copy(asked)
            after.op, after.leaves_splits, after.page_table, after.kv_lengths = COMBINE, 0, 0, 0
            combine = next(one for one in candidates if one.descriptor.op == COMBINE and not one.supports(after))
            stages.append(launcher(combine, after, args))
        return lambda: [stage() for stage in stages]

    times = {}
    for splits in SPLITS:
        if splits <= length // 64 and splits * batch * hk <= MOST_BLOCKS:
            calls = {"ours": rotating([call(splits, asked, args) for asked, args, *_ in sets])}
            times[splits] = statistics.median(interleaved(calls, rounds, idle_s=0.005)["ours"])
    return times


def forward(
    candidates: list[AttentionKernel], shape: tuple[int, ...], window: str, pages: int, rounds: int
) -> dict[str, float]:
    """Milliseconds of every kernel that serves the shape, interleaved."""
    batch, hq, hk, queries, keys, hdim = shape
    mask, widths = WINDOWS[window]
    case = Case((queries,) * batch, (keys,) * batch, (hq, hk), bool(pages), mask, widths, lse=False)
    x = operands(case, "bf16", (hdim, hdim))
    asked, args = problem_of(case, "bf16", x), args_of(case, x)
    cache = paged(case, x, LIST, pages, False) if pages else None
    if cache:
        cache.pose(asked, args)
    serving = {one.name: launcher(one, asked, args) for one in candidates if not one.supports(asked)}
    return {name: statistics.median(ms) for name, ms in interleaved(serving, rounds, idle_s=0.01).items()}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further measurement after so many")
    options = parser.parse_args()
    candidates = list(kernels(options.library))
    start = time.monotonic()
    result: dict[str, Any] = {"environment": environment(options.library.parent), "decode": [], "forward": []}
    for shape in DECODE:
        if time.monotonic() - start < options.seconds:
            result["decode"].append({"shape": shape, "ms": decode(candidates, shape, options.rounds)})
    for shape, window, page in itertools.product(FORWARD, WINDOWS, (0, 16)):
        if time.monotonic() - start < options.seconds and (not page or shape[-1] == 128):
            times = forward(candidates, shape, window, page, options.rounds)
            result["forward"].append({"shape": shape, "window": window, "page": page, "ms": times})
    options.out.write_text(json.dumps(result) + "\n")
    print(f"{len(result['decode'])} and {len(result['forward'])} lines in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
