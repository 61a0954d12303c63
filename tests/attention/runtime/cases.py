"""Random problems of attention: lengths, heads, features, and operands with what each request makes of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from attention.masks import FULL, Window
from attention.philox import random_bytes
from attention.reference import Features

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@dataclass(frozen=True)
class Case:
    """One problem. ``queries`` and ``keys`` hold a number for each request; in batch mode all queries are equal."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 2
    hdim: int = 16
    hdim_v: int = 16
    dtype: str = "fp32"
    group: bool = False
    layout: str = "bshd"
    window: Window = FULL
    bias: str = "none"
    soft_cap: float = 0.0
    sinks: bool = False
    dropout: float = 0.0
    splits: int = 0
    seed: int = 0
    scale: float | None = None

    @property
    def ragged_keys(self) -> bool:
        """Whether requests have fewer keys than a batch has room for."""
        return not self.group and len({*self.keys}) > 1


def random_case(seed: int, dtype: str = "fp32", most: int = 70) -> Case:
    """A problem with features that exclude each other never together; every third one is plain."""
    rng = np.random.default_rng(seed)

    def pick(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    batch = int(rng.integers(1, 4))
    group = bool(rng.integers(2))
    least = 0 if seed % 5 == 0 else 1
    queries = tuple(int(each) for each in rng.integers(least, most, batch))
    keys = tuple(int(each) for each in rng.integers(least, 2 * most, batch))
    heads, kv_heads = pick((1, 1), (2, 2), (4, 2), (8, 1), (6, 3))
    hdim = pick(8, 16, 32, 64)
    case = Case(
        queries if group else (queries[0],) * batch, keys if group or rng.integers(2) else (keys[0],) * batch, heads,
        kv_heads, hdim, pick(hdim, 16), dtype, group, pick("bshd", "bhsd") if not group else "bshd", seed=seed,
    )  # fmt: skip
    if seed % 3 == 0:
        return case
    window = pick(
        FULL, Window(right=0), Window(right=0, bottom_right=True), Window(9, 3, True), Window(5, 0, True), Window(4, 7)
    )
    soft_cap = pick(0.0, 0.0, 3.0)
    bias = "none" if soft_cap else pick("none", "elementwise", "alibi")
    return replace(
        case, window=window, soft_cap=soft_cap, bias=bias, sinks=bool(rng.integers(2)), dropout=pick(0.0, 0.0, 0.25),
        scale=0.3 if seed % 4 == 1 else None,
    )  # fmt: skip


@dataclass(frozen=True)
class Operands:
    """Arrays of a case, rows of requests in their places, and numbers of dropout."""

    case: Case
    q: Array
    k: Array
    v: Array
    do: Array
    bias: Array | None
    slopes: Array | None
    sinks: Array | None
    seed: int
    offset: int

    def request(self, name: str, index: int) -> Array:
        """q, k, v or do (heads x rows x head dimension) of one request, only the rows that count."""
        return rows_of(self.case, getattr(self, name), index, "k" if name in "kv" else "q")

    def features(self, index: int) -> Features:
        """What the reference is told of a request."""
        case, queries, keys = self.case, self.case.queries[index], self.case.keys[index]
        bias = None
        if self.bias is not None:
            first = sum(case.queries[:index])
            whole = self.bias[:, first : first + queries] if case.group else self.bias[index]
            bias = np.broadcast_to(whole, (case.heads, *whole.shape[1:]))[:, :queries, :keys]
        kept = None
        if case.dropout:
            drawn = random_bytes((index + 1, case.heads, queries, keys), self.seed, self.offset)[index]
            kept = drawn <= int((1 - case.dropout) * 255)
        return Features(
            scale=case.scale, soft_cap=case.soft_cap, bias=bias, slopes=self.slopes, window=case.window,
            sinks=self.sinks, kept=kept, keep=1 - case.dropout,
        )  # fmt: skip


def rows_of(case: Case, array: Array, index: int, which: str) -> Array:
    """Heads x rows x … of one request out of an array of all: those that count."""
    lengths = case.queries if which == "q" else case.keys
    if case.group:
        first = sum(lengths[:index])
        rows = array[first : first + lengths[index]]
        return rows.transpose(1, 0, 2)
    rows = array[index] if case.layout == "bhsd" else array[index].transpose(1, 0, 2)
    return rows[:, : lengths[index]]


def shape(case: Case, which: str, heads: int, inner: int) -> tuple[int, ...]:
    """Shape of a tensor with rows of queries or keys."""
    lengths = case.queries if which == "q" else case.keys
    if case.group:
        return sum(lengths), heads, inner
    rows = max(lengths)
    return (len(lengths), rows, heads, inner) if case.layout == "bshd" else (len(lengths), heads, rows, inner)


def operands(case: Case) -> Operands:
    """Random operands; rows that do not count are NaN, so that whoever reads them is found out."""
    rng, dtype = np.random.default_rng(case.seed + 1), DTYPES[case.dtype]

    def draw(which: str, heads: int, inner: int) -> Array:
        made = rng.standard_normal(shape(case, which, heads, inner)).astype(dtype)
        if which == "k" and case.ragged_keys:
            for index, length in enumerate(case.keys):
                (made[index] if case.layout == "bshd" else made[index].swapaxes(0, 1))[length:] = np.nan
        return made

    q, k = draw("q", case.heads, case.hdim), draw("k", case.kv_heads, case.hdim)
    v, do = draw("k", case.kv_heads, case.hdim_v), draw("q", case.heads, case.hdim_v)
    bias = None
    if case.bias == "elementwise":
        whole = (sum(case.queries),) if case.group else (case.queries[0],)
        front = () if case.group else (len(case.queries),)
        bias = rng.standard_normal((*front, case.heads if case.seed % 2 else 1, *whole, max(case.keys))).astype(dtype)
    slopes = rng.random(case.heads).astype(np.float32) / 4 if case.bias == "alibi" else None
    sinks = rng.standard_normal(case.heads).astype(np.float32) if case.sinks else None
    return Operands(case, q, k, v, do, bias, slopes, sinks, int(rng.integers(2**63)), int(rng.integers(2**40)))


def options(made: Operands) -> dict[str, Any]:
    """What calls are told beside q, k and v."""
    case = made.case
    kwargs: dict[str, Any] = {"layout": case.layout, "soft_cap": case.soft_cap, "dropout_p": case.dropout}
    kwargs["scale"] = case.scale
    if case.window != FULL:
        kwargs["mask"] = "bottom_right" if case.window.bottom_right else "top_left"
        kwargs["window"] = case.window.left, case.window.right
    if case.dropout:
        kwargs |= {"seed": made.seed, "offset": made.offset}
    kwargs |= {"bias": made.bias, "alibi_slopes": made.slopes}
    if case.group:
        kwargs |= {"cu_seqlens_q": starts(case.queries), "cu_seqlens_k": starts(case.keys)}
        kwargs |= {"max_seqlen_q": max(case.queries), "max_seqlen_k": max(case.keys)}
    if case.ragged_keys:
        kwargs["seqlens_k"] = np.array(case.keys, np.int32)
    return kwargs


def starts(lengths: tuple[int, ...]) -> Array:
    """First rows of requests, and the total behind them."""
    return np.array([0, *itertools.accumulate(lengths)], np.int32)
