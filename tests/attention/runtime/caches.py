"""Runs decode(), prefill() and append_kv() of a dispatcher on random caches and holds every request to float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from attention.masks import BOTTOM_RIGHT, FULL, Window
from attention.pages import Pages, append, paged, rotated
from attention.reference import Features, forward
from attention.runtime.cases import DTYPES, starts
from kernelwright.dispatch import Dispatcher

Array = np.ndarray[Any, np.dtype[Any]]
LENGTHS = (37, 5, 0, 64)
HEADS, KV_HEADS, D = 4, 2, 16
TOLERANCE = {"fp32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}  # twice what rounding probabilities and results costs


def requests(rng: np.random.Generator, lengths: tuple[int, ...], heads: int, dtype: str = "fp32") -> list[Array]:
    return [rng.standard_normal((length, heads, D)).astype(DTYPES[dtype]) for length in lengths]


def table(pages: Pages, kind: str) -> dict[str, Array]:
    """The options that describe a page table of one kind."""
    if kind == "block":
        return {"page_table": pages.block_table, "seqlens_k": np.array(pages.lengths, np.int32)}
    return {
        "page_table": pages.indices, "page_indptr": pages.indptr, "last_page_lengths": pages.last_page_lengths
    }  # fmt: skip


def check(out: Array, lse: Array, q: Array, k: Array, v: Array, features: Features, dtype: str) -> None:
    """O and LSE (rows first) of one request."""
    wanted = forward(*(each.transpose(1, 0, 2) for each in (q, k, v)), features)
    np.testing.assert_allclose(out.transpose(1, 0, 2).astype(np.float64), wanted.o, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(lse, wanted.lse, atol=TOLERANCE[dtype])


def in_pages_of(pages: Pages, rows: list[Array]) -> Array:
    """A cache of other rows in the same pages, with NaN where no row is."""
    size = pages.cache.shape[1]
    made = np.full((*pages.cache.shape[:2], *rows[0].shape[1:]), np.nan, rows[0].dtype)
    for own, request in zip(pages.block_table, rows, strict=True):
        for place, page in enumerate(own[: -(-len(request) // size)]):
            part = request[place * size : (place + 1) * size]
            made[page, : len(part)] = part
    return made


def check_decode(
    dispatcher: Dispatcher, kind: str, queries: int, window: tuple[int, int] | None, splits: int, dtype: str = "fp32"
) -> None:
    """Queries at the end of caches in shuffled pages."""
    rng = np.random.default_rng(queries)
    ks, vs = requests(rng, LENGTHS, KV_HEADS, dtype), requests(rng, LENGTHS, KV_HEADS, dtype)
    k = paged(ks, 16, rng)
    q = rng.standard_normal((len(LENGTHS), queries, HEADS, D)).astype(DTYPES[dtype])
    out, lse = dispatcher.decode(
        q, k.cache, in_pages_of(k, vs), lse=True, window=window, max_seqlen_k=64, num_splits=splits, **table(k, kind)
    )
    mask = Window(*window, True) if window else BOTTOM_RIGHT if queries > 1 else FULL
    for b in range(len(LENGTHS)):
        check(out[b], lse[b], q[b], ks[b], vs[b], Features(window=mask), dtype)


def check_prefill(
    dispatcher: Dispatcher, kind: str, page_size: int, soft_cap: float = 0.0, dtype: str = "fp32"
) -> None:
    """Ragged requests, causal."""
    rng = np.random.default_rng(3)
    ks, vs = requests(rng, LENGTHS, KV_HEADS, dtype), requests(rng, LENGTHS, KV_HEADS, dtype)
    k, counts = paged(ks, page_size, rng), (9, 5, 3, 1)
    q = rng.standard_normal((sum(counts), HEADS, D)).astype(DTYPES[dtype])
    first = starts(counts)
    out, lse = dispatcher.prefill(
        q, k.cache, in_pages_of(k, vs), first, max(counts), lse=True, max_seqlen_k=64, soft_cap=soft_cap,
        **table(k, kind),
    )  # fmt: skip
    for b in range(len(counts)):
        own = slice(first[b], first[b + 1])
        features = Features(window=BOTTOM_RIGHT, soft_cap=soft_cap)
        check(out[own], lse[:, own], q[own], ks[b], vs[b], features, dtype)


def check_append(dispatcher: Dispatcher, where: str, interleaved: bool, dtype: str = "fp32") -> None:
    """New rows with rotary embedding, in ``pages``, ``contiguous`` caches, or K and V ``side by side`` in one."""
    rng, kind = np.random.default_rng(5), DTYPES[dtype]
    lengths, new = (6, 0, 15), 3
    old = requests(rng, lengths, KV_HEADS, dtype)
    k, v = (rng.standard_normal((3, new, KV_HEADS, D)).astype(kind) for _ in range(2))
    q = rng.standard_normal((3, new, HEADS, D)).astype(kind)
    angles = rng.standard_normal((40, 4))
    cos, sin = np.cos(angles).astype(kind), np.sin(angles).astype(kind)
    turned = [rotated(k[b], cos, sin, lengths[b], interleaved).astype(kind) for b in range(3)]
    given: dict[str, Any] = {"q": q, "cos": cos, "sin": sin, "interleaved": interleaved}
    if where == "pages":
        pages = paged([np.concatenate([one, np.zeros((new, KV_HEADS, D), kind)]) for one in old], 8, rng)
        held = Pages(pages.cache, lengths, pages.block_table, pages.indptr, pages.indices, pages.last_page_lengths)
        k_wanted, v_wanted = append(pages.cache, held, turned), append(pages.cache, held, list(v))
        k_cache, v_cache = pages.cache.copy(), pages.cache.copy()
        given["page_table"] = pages.block_table
    else:
        both = np.full((3, 2, 20, KV_HEADS, D), np.nan, kind)
        k_cache, v_cache = both[:, 0], both[:, 1]
        if where == "contiguous":
            k_cache, v_cache = k_cache.copy(), v_cache.copy()
        k_wanted, v_wanted = k_cache.copy(), v_cache.copy()
        for b in range(3):
            k_wanted[b, lengths[b] : lengths[b] + new] = turned[b]
            v_wanted[b, lengths[b] : lengths[b] + new] = v[b]
    q_rotated = dispatcher.append_kv(k, v, k_cache, v_cache, np.array(lengths, np.int32), **given)
    rounded = {"fp32": 1e-6, "fp16": 4e-3, "bf16": 4e-2}[dtype]
    np.testing.assert_allclose(k_cache.astype(np.float32), k_wanted.astype(np.float32), atol=rounded)
    np.testing.assert_array_equal(v_cache.astype(np.float32), v_wanted.astype(np.float32))
    for b in range(3):
        wanted = rotated(q[b], cos, sin, lengths[b], interleaved)
        np.testing.assert_allclose(q_rotated[b].astype(np.float64), wanted, atol=rounded)
