"""Launches in company: products, convolutions and attention alone, and directly after a call of torch or NumPy.

Workers of other libraries spin for work after each of their calls, on the cores that launches want. Each round times
a launch after 0.15 s of rest, one directly after a product of torch, and one directly after one of NumPy. Least times
of a round's repeats are compared within the round; medians over rounds are reported with the smallest and the largest.
Every source of threads that the process has is measured (``use_threads``). Outputs are compared with float64 first.

    python benchmarks/cpu/company.py --libraries FOLDER… --threads 2 --out result.json

``--libraries`` are what KernelLibrary.load_for takes. KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is
installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "arch"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import machine
import numpy as np
import torch
from results_file import text

from kernelwright.dispatch import Dispatcher, KernelLibrary, threads_in_use, use_threads

Call = Callable[[], object]
REST, REPEATS = 0.15, 3


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    os.environ["KERNELWRIGHT_NUM_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    dispatcher = Dispatcher([KernelLibrary.load_for("cpu", folder) for folder in given.libraries])
    rows = []
    for source in ("own", "openmp"):
        use_threads(source)
        for name, call in calls(dispatcher).items():
            rows.append({"call": name, "threads": source, **measured(call, given.rounds)})
            print(rows[-1], flush=True)
    about = machine.describe(numpy=np.__version__, torch=torch.__version__, runtime=Path(threads_in_use().runtime).name)
    given.out.write_text(text({"machine": about, "threads": given.threads, "rounds": given.rounds}, rows))


def calls(dispatcher: Dispatcher) -> dict[str, Call]:
    """Launches of a few hundred microseconds, with verified outputs."""
    draw = np.random.default_rng(1)
    a, b = (draw.integers(-4, 5, (512, 512)).astype(np.float32) for _ in range(2))
    x = draw.integers(-2, 3, (4, 28, 28, 64)).astype(np.float32)
    w = draw.integers(-2, 3, (64, 3, 3, 64)).astype(np.float32)
    q = draw.standard_normal((1, 512, 8, 64)).astype(np.float32)
    product = np.empty((512, 512), np.float32)
    dispatcher.gemm(a, b, out=product)
    assert np.array_equal(product, a.astype(np.float64) @ b.astype(np.float64))
    wanted = torch.nn.functional.conv2d(
        torch.tensor(x).double().permute(0, 3, 1, 2), torch.tensor(w).double().permute(0, 3, 1, 2), padding=1
    )
    assert np.array_equal(conv(dispatcher, x, w), wanted.permute(0, 2, 3, 1).numpy())
    heads = torch.tensor(q).double().permute(0, 2, 1, 3)
    attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).permute(0, 2, 1, 3).numpy()
    assert np.abs(attention(dispatcher, q) - attended).max() < 1e-4
    return {
        "gemm fp32 512x512x512": lambda: dispatcher.gemm(a, b, out=product),
        "conv fp32 4x28x28x64 3x3 64": lambda: conv(dispatcher, x, w),
        "attention fp32 1x512x8x64": lambda: attention(dispatcher, q),
    }


def conv(dispatcher: Dispatcher, x: Any, w: Any) -> Any:
    """A convolution with as many outputs as inputs per image."""
    return dispatcher.conv_forward(x, w, padding=1)


def attention(dispatcher: Dispatcher, q: Any) -> Any:
    """Attention in which every row attends to every row."""
    return dispatcher.attention(q, q, q)


def measured(call: Call, rounds: int) -> dict[str, Any]:
    """Milliseconds alone, and the fraction of that speed that remains in company."""
    left, right = (np.ones((512, 512), np.float32) for _ in range(2))
    theirs, ours = torch.ones(512, 512), torch.ones(512, 512)
    company: dict[str, Call] = {"torch": lambda: torch.mm(theirs, ours), "numpy": lambda: left @ right}
    alone: list[float] = []
    shares: dict[str, list[float]] = {name: [] for name in company}
    for _ in range(rounds):
        alone.append(min(timed(call, None) for _ in range(REPEATS)))
        for name, other in company.items():
            shares[name].append(alone[-1] / min(timed(call, other) for _ in range(REPEATS)))
    figures: dict[str, Any] = {"alone_ms": round(median(alone) * 1e3, 4)}
    for name, each in shares.items():
        figures[f"after_{name}"] = [round(value, 3) for value in (median(each), min(each), max(each))]
    return figures


def timed(call: Call, before: Call | None) -> float:
    """Seconds of the call, after a rest or directly after another call."""
    if before is None:
        time.sleep(REST)
        call()  # so that caches are as warm as in company
    else:
        call()
        before()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
