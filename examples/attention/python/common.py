"""What the examples share: which library they run on, and attention by NumPy."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from kernelwright.dispatch import KernelLibrary


def example_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with ``--library DIR``; DIR holds <arch>/manifest.json."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--library", help="folder of the library; without it, an installed wheel is used")
    return made


def open_library(options: argparse.Namespace, device: str = "cpu") -> KernelLibrary:
    """The library of ``--library``, else the one of an installed kernelwright-kernels-attention wheel."""
    if options.library:
        return KernelLibrary.load_for(device, options.library)
    return KernelLibrary.load_installed(device, "attention")


def drawn(seed: int, *shape: int) -> Any:
    """Normally distributed numbers in fp32."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def by_numpy(q: Any, k: Any, v: Any, *, scale: float | None = None, added: Any = 0.0, cap: float = 0.0) -> Any:
    """One request: q (queries, heads, d), k and v (keys, fewer heads, d); ``added`` to scores, heads first."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each, group, axis=1) for each in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if cap:
        scores = cap * np.tanh(scores / cap)
    scores = scores + added
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)


def causal(queries: int, keys: int, left: int = -1) -> Any:
    """What a causal mask, the last query at the last key, adds to scores; a window of ``left`` keys unless -1."""
    distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)[None, :]
    return np.where((distance >= 0) & ((left < 0) | (distance <= left)), 0.0, -np.inf)


def check(computed: Any, wanted: Any, what: str) -> None:
    """Compare with NumPy's result; exits with what was wrong."""
    error = float(np.abs(computed - wanted).max(initial=0.0))
    if not error < 1e-4:
        raise SystemExit(f"{what}: off by {error}")
    print(f"{what}: as NumPy, within {error:.1e}")
