"""Attention in float64, for some queries of one head with some keys, and a kernel's error bounds.

A kernel may round probabilities and score gradients to the element type before a product, sums in fp32 and rounds its
result once; the bounds follow from that and hold for each element, not just for the largest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.tile_engine.operation import Record

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
_CAP = 2.0**-10  # twice the relative error of the hardware's tanh (PTX ISA, tanh.approx.f32: 2**-11)


@dataclass(frozen=True)
class Head:
    """One head of one request: rows of Q, K and V in float64, and their positions.

    :ivar query_places: positions of queries among the keys; ``key_places`` those of keys.
    :ivar slope: ALiBi slope, 0 for none. ``bias`` is queries x keys, or None.
    """

    q: Array
    k: Array
    v: Array
    query_places: Array
    key_places: Array
    slope: float = 0.0
    bias: Array | None = None
    sink: float | None = None

    def queries(self, chosen: Array) -> Head:
        """The same head with a subset of its queries."""
        bias = None if self.bias is None else self.bias[chosen]
        return replace(self, q=self.q[chosen], query_places=self.query_places[chosen], bias=bias)

    def keys(self, chosen: Array) -> Head:
        """The same head with a subset of its keys."""
        bias = None if self.bias is None else self.bias[:, chosen]
        return replace(self, k=self.k[chosen], v=self.v[chosen], key_places=self.key_places[chosen], bias=bias)


@dataclass(frozen=True)
class Result:
    """The exact result, and the error allowed to a kernel."""

    exact: Array
    bound: Array

    def share(self, computed: Array) -> float:
        """The largest error as a fraction of its bound; infinite for NaN, and for infinities that are not exact."""
        computed = computed.astype(np.float64)
        with np.errstate(invalid="ignore"):
            off = np.where(computed == self.exact, 0.0, np.abs(computed - self.exact))
        bound = np.maximum(self.bound, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.where(off == 0, 0.0, off / bound)
        return float(np.nan_to_num(share, nan=np.inf, posinf=np.inf).max(initial=0.0))


def scores(record: Record, head: Head) -> tuple[Array, Array]:
    """Scores with cap and biases, and whether the mask keeps them."""
    s = head.q @ head.k.T / np.sqrt(record["hdim_q"])
    if record["soft_cap"]:
        s = record["soft_cap"] * np.tanh(s / record["soft_cap"])
    distance = head.key_places[None, :] - head.query_places[:, None]
    s = s - head.slope * np.abs(distance)
    if head.bias is not None:
        s = s + head.bias
    seen = np.ones(s.shape, bool)
    if record["mask"] != "none":
        for limit, reached in ((record["window_left"], -distance), (record["window_right"], distance)):
            if limit >= 0:
                seen &= reached <= limit
    return s, seen


def forward(record: Record, head: Head) -> tuple[Result, Result]:
    """O, and the logarithm of each row's sum of exponentials."""
    s, seen = scores(record, head)
    s = np.where(seen, s, -np.inf)
    sink = -np.inf if head.sink is None else head.sink
    top = np.maximum(s.max(-1, initial=-np.inf), sink)
    base = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(s - base[:, None])
    total = e.sum(-1) + np.exp(sink - base)
    p = e / np.where(total == 0, 1.0, total)[:, None]
    with np.errstate(divide="ignore"):
        lse = np.log(total) + base
    o, unit, loss = p @ head.v, ROUNDOFF[record["dtype"]], _loss(record, len(head.k))
    bound = (2 * unit + loss) * (p @ np.abs(head.v)) + unit * np.abs(o)
    return Result(o, bound), Result(lse, np.where(np.isfinite(lse), (unit + loss) * (1 + np.abs(lse)), 0.0))


def visible_keys(record: Record, head: Head) -> Array:
    """Number of keys that each query sees."""
    first, last = np.zeros(len(head.q), int), np.full(len(head.q), len(head.k) - 1)
    if record["mask"] != "none":
        if record["window_left"] >= 0:
            first = np.maximum(first, head.query_places - record["window_left"])
        if record["window_right"] >= 0:
            last = np.minimum(last, head.query_places + record["window_right"])
    counts: Array = np.maximum(last - first + 1, 0)
    return counts


@dataclass(frozen=True)
class Weights:
    """Probabilities of the backward pass, gradients of scores, and the error allowed to a kernel's."""

    p: Array
    ds: Array
    loss: Array


def weights(record: Record, head: Head, do: Array, o: Array, lse: Array) -> Weights:
    """The weights of rows, given their dO, O and LSE."""
    s, seen = scores(record, head)
    known = np.where(np.isfinite(lse), lse, 0.0)
    p = np.where(seen & np.isfinite(lse)[:, None], np.exp(s - known[:, None]), 0.0)
    dp, d = do @ head.v.T, (do * o).sum(-1)
    ds = p * (dp - d[:, None])
    size = np.abs(do) @ np.abs(head.v).T + np.abs(do * o).sum(-1)[:, None]
    unit, loss = ROUNDOFF[record["dtype"]], _loss(record, max(s.shape))
    if record["soft_cap"]:
        plain = head.q @ head.k.T / np.sqrt(record["hdim_q"])
        ds = ds * (1 - np.tanh(plain / record["soft_cap"]) ** 2)
    return Weights(p, ds, (2 * unit + loss) * np.abs(ds) + loss * p * size)


def gradients(record: Record, head: Head, do: Array, w: Weights) -> dict[str, Result]:
    """dQ of the head's queries, and their contributions to dK and dV, with bounds before the last rounding."""
    scale, unit = 1 / np.sqrt(record["hdim_q"]), ROUNDOFF[record["dtype"]]
    spread = (2 * unit + _loss(record, len(head.q))) * w.p
    return {
        "dq": Result(scale * w.ds @ head.k, scale * w.loss @ np.abs(head.k)),
        "dk": Result(scale * w.ds.T @ head.q, scale * w.loss.T @ np.abs(head.q)),
        "dv": Result(w.p.T @ do, spread.T @ np.abs(do)),
    }


def rounded(parts: Sequence[Result], unit: float) -> Result:
    """The sum of the parts, rounded once to the element type."""
    exact: Array = sum((part.exact for part in parts), np.zeros(()))
    bound: Array = sum((part.bound for part in parts), unit * np.abs(exact))
    return Result(exact, bound)


def _loss(record: Record, terms: int) -> float:
    """Relative error of fp32 arithmetic: exponentials of scores, and sums of this many terms in any order."""
    loss = float(2.0**-18 + 2.0**-22 * np.sqrt(terms))
    return loss + _CAP if record["soft_cap"] and record["dtype"] != "fp32" else loss
