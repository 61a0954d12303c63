"""Random problems with caches of K and V: split keys, pages of both kinds of tables, and appended rows, by a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attention.masks import BOTTOM_RIGHT, FULL, Window
from attention.pages import Pages, append, paged, rotated
from attention.reference import Features, forward
from attention.runtime.bench import check_forward
from attention.runtime.caches import TOLERANCE, in_pages_of, table
from attention.runtime.cases import DTYPES, random_case, starts
from kernelwright.dispatch import Dispatcher

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Cached:
    """Requests whose keys lie in shuffled pages, and what the calls are told of their scores."""

    q: list[Array]
    k: list[Array]
    v: list[Array]
    pages: Pages
    kind: str
    soft_cap: float
    sinks: Array | None
    longest: int

    def options(self) -> dict[str, Any]:
        """Options of decode() and prefill()."""
        told: dict[str, Any] = {"lse": True, "soft_cap": self.soft_cap, "sinks": self.sinks}
        return {**told, "max_seqlen_k": self.longest, **table(self.pages, self.kind)}

    def check(self, request: int, out: Array, lse: Array, window: Window, dtype: str) -> None:
        """O (rows first) and LSE of one request against float64."""
        features = Features(window=window, soft_cap=self.soft_cap, sinks=self.sinks)
        one = (each[request].transpose(1, 0, 2) for each in (self.q, self.k, self.v))
        wanted = forward(*one, features)
        allowed = TOLERANCE[dtype] * max(1.0, np.abs(wanted.o).max(initial=0.0))
        np.testing.assert_allclose(out.transpose(1, 0, 2).astype(np.float64), wanted.o, atol=allowed, rtol=0)
        np.testing.assert_allclose(lse, wanted.lse, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def draw(rng: np.random.Generator, queries: tuple[int, ...], dtype: str) -> Cached:
    """Keys for so many queries of each request; a request without keys now and then."""
    heads, kv_heads = ((1, 1), (4, 2), (8, 1), (6, 3))[rng.integers(4)]
    hdim = int((8, 16, 32, 64, 128)[rng.integers(5)])
    hdim_v = int((hdim, 16, hdim)[rng.integers(3)])
    lengths = tuple(int(each) for each in rng.integers(0, 150, len(queries)))

    def rows(counts: tuple[int, ...], heads: int, inner: int) -> list[Array]:
        return [rng.standard_normal((count, heads, inner)).astype(DTYPES[dtype]) for count in counts]

    pages = paged(k := rows(lengths, kv_heads, hdim), int((1, 4, 16, 64)[rng.integers(4)]), rng)
    return Cached(
        rows(queries, heads, hdim),
        k,
        rows(lengths, kv_heads, hdim_v),
        pages,
        ("block", "list")[rng.integers(2)],
        float((0, 0, 3)[rng.integers(3)]),
        rng.standard_normal(heads).astype(np.float32) if rng.integers(2) else None,
        max(1, *lengths),
    )


def check_decode(dispatcher: Dispatcher, seed: int, dtype: str, splits: int) -> None:
    """The same few queries of each request at the end of its keys; ``splits`` as ``num_splits``."""
    rng = np.random.default_rng(seed)
    queries = int((1, 1, 2, 5, 20)[rng.integers(5)])
    case = draw(rng, (queries,) * int(rng.integers(1, 5)), dtype)
    window = (None, None, (7, 0), (0, 0))[rng.integers(4)]
    values = in_pages_of(case.pages, case.v)
    out, lse = dispatcher.decode(
        np.stack(case.q), case.pages.cache, values, window=window, num_splits=splits, **case.options()
    )
    mask = Window(*window, True) if window else BOTTOM_RIGHT if queries > 1 else FULL
    for b in range(len(case.q)):
        case.check(b, out[b], lse[b], mask, dtype)


def check_prefill(dispatcher: Dispatcher, seed: int, dtype: str) -> None:
    """Ragged requests."""
    rng = np.random.default_rng(seed)
    queries = tuple(int(each) for each in rng.integers(0 if seed % 5 == 0 else 1, 70, rng.integers(1, 5)))
    case = draw(rng, queries, dtype)
    window = (None, None, (20, 0), (3, 2))[rng.integers(4)]
    first = starts(queries)
    values = in_pages_of(case.pages, case.v)
    out, lse = dispatcher.prefill(
        np.concatenate(case.q), case.pages.cache, values, first, max(1, *queries), window=window, **case.options()
    )
    for b in range(len(queries)):
        own = slice(first[b], first[b + 1])
        case.check(b, out[own], lse[:, own], Window(*window, True) if window else BOTTOM_RIGHT, dtype)


def check_append(dispatcher: Dispatcher, seed: int, dtype: str) -> None:
    """New rows, half of the time with rotary embedding, into pages or caches side by side."""
    rng, kind = np.random.default_rng(seed), DTYPES[dtype]
    batch, new, heads, kv_heads = int(rng.integers(1, 5)), int(rng.integers(1, 9)), 4, int((1, 2, 4)[rng.integers(3)])
    hdim = int((8, 16, 64, 128)[rng.integers(4)])
    lengths = tuple(int(each) for each in rng.integers(0, 40, batch))
    old = [rng.standard_normal((length, kv_heads, hdim)).astype(kind) for length in lengths]
    k, v = (rng.standard_normal((batch, new, kv_heads, hdim)).astype(kind) for _ in range(2))
    given: dict[str, Any] = {}
    turned = list(k)
    interleaved, places = bool(rng.integers(2)), int(rng.integers(1, hdim // 2 + 1))
    if rng.integers(2):
        angles = rng.standard_normal((50, places))
        given = {"cos": np.cos(angles).astype(kind), "sin": np.sin(angles).astype(kind), "interleaved": interleaved}
        given["q"] = rng.standard_normal((batch, new, heads, hdim)).astype(kind)
        turned = [rotated(k[b], given["cos"], given["sin"], lengths[b], interleaved).astype(kind) for b in range(batch)]
    if rng.integers(2):
        room = np.zeros((new, kv_heads, hdim), kind)
        pages = paged([np.concatenate([one, room]) for one in old], int((1, 8)[rng.integers(2)]), rng)
        held = replace(pages, lengths=lengths)
        k_wanted, v_wanted = append(pages.cache, held, turned), append(pages.cache, held, list(v))
        k_cache, v_cache = pages.cache.copy(), pages.cache.copy()
        given["page_table"] = pages.block_table
    else:
        both = np.full((batch, 2, 50, kv_heads, hdim), np.nan, kind)
        k_cache, v_cache = both[:, 0], both[:, 1]
        k_wanted, v_wanted = k_cache.copy(), v_cache.copy()
        for b in range(batch):
            k_wanted[b, lengths[b] : lengths[b] + new] = turned[b]
            v_wanted[b, lengths[b] : lengths[b] + new] = v[b]
    q_rotated = dispatcher.append_kv(k, v, k_cache, v_cache, np.array(lengths, np.int32), **given)
    rounded = {"fp32": 2e-6, "fp16": 8e-3, "bf16": 6e-2}[dtype]
    np.testing.assert_allclose(k_cache.astype(np.float32), k_wanted.astype(np.float32), atol=rounded)
    np.testing.assert_array_equal(v_cache.astype(np.float32), v_wanted.astype(np.float32))
    for b in range(batch if "q" in given else 0):
        wanted = rotated(given["q"][b], given["cos"], given["sin"], lengths[b], interleaved)
        np.testing.assert_allclose(q_rotated[b].astype(np.float64), wanted, atol=rounded)


def check_splits(dispatcher: Dispatcher, seed: int, dtype: str) -> None:
    """Keys of a contiguous problem without bias in 2 to 9 parts, which are combined."""
    case = random_case(seed, dtype)
    check_forward(dispatcher, replace(case, splits=2 + seed % 8, dropout=0.0, bias="none"))


FAMILIES: dict[str, Callable[[Dispatcher, int, str], None]] = {
    "fwd_splitkv": check_splits,
    "fwd_pagedkv": lambda dispatcher, seed, dtype: check_decode(dispatcher, seed, dtype, 1),
    "fwd_splitkv of pages": lambda dispatcher, seed, dtype: check_decode(dispatcher, seed, dtype, 2 + seed % 6),
    "batch_prefill": check_prefill,
    "fwd_appendkv": check_append,
}
"""What is drawn and checked, by the family that serves it."""
