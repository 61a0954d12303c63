"""Decoding, prefill and append on CPUs: caches of K and V, contiguous and in pages of both kinds of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention.masks import BOTTOM_RIGHT, FULL, Window
from attention.pages import Pages, append, paged, rotated
from attention.reference import Features, forward
from attention.runtime.cases import DTYPES, starts
from kernelwright.dispatch import Dispatcher, LaunchError

Array = np.ndarray[Any, np.dtype[Any]]
Typed = tuple[Dispatcher, str]
LENGTHS = (370, 5, 0, 640, 33)
TOLERANCE = {"fp32": 1e-5, "fp16": 3e-3, "bf16": 2.4e-2}


def requests(rng: np.random.Generator, lengths: tuple[int, ...], heads: int, d: int, dtype: str) -> list[Array]:
    return [rng.standard_normal((length, heads, d)).astype(DTYPES[dtype]) for length in lengths]


def pages_of(ks: list[Array], vs: list[Array], size: int) -> tuple[Pages, Array]:
    """Shuffled pages of K, and V in the pages of the same numbers."""
    k, v = (paged(rows, size, np.random.default_rng(size)) for rows in (ks, vs))
    np.testing.assert_array_equal(k.indices, v.indices)
    return k, v.cache


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


@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize("size", [1, 16, 256])
@pytest.mark.parametrize(("queries", "window"), [(1, None), (3, None), (2, (200, 0))])
def test_decode_out_of_pages(typed: Typed, kind: str, size: int, queries: int, window: tuple[int, int] | None) -> None:
    dispatcher, dtype = typed
    rng = np.random.default_rng(queries)
    for heads, kv_heads, d, dv in ((8, 1, 128, 128), (4, 2, 64, 24)):
        ks, vs = requests(rng, LENGTHS, kv_heads, d, dtype), requests(rng, LENGTHS, kv_heads, dv, dtype)
        k, values = pages_of(ks, vs, size)
        q = rng.standard_normal((len(LENGTHS), queries, heads, d)).astype(DTYPES[dtype])
        for splits in (0, 1, 3):
            out, lse = dispatcher.decode(
                q, k.cache, values, lse=True, window=window, max_seqlen_k=640, num_splits=splits, **table(k, kind)
            )
            mask = Window(*window, True) if window else BOTTOM_RIGHT if queries > 1 else FULL
            for b in range(len(LENGTHS)):
                check(out[b], lse[b], q[b], ks[b], vs[b], Features(window=mask), dtype)


@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize("soft_cap", [0.0, 2.0])
def test_prefill_of_ragged_requests(typed: Typed, kind: str, soft_cap: float) -> None:
    dispatcher, dtype = typed
    rng = np.random.default_rng(3)
    for size in (1, 16):
        ks, vs = requests(rng, LENGTHS, 2, 64, dtype), requests(rng, LENGTHS, 2, 64, dtype)
        k, values = pages_of(ks, vs, size)
        counts = (150, 5, 3, 97, 1)
        q = rng.standard_normal((sum(counts), 8, 64)).astype(DTYPES[dtype])
        first = starts(counts)
        out, lse = dispatcher.prefill(
            q, k.cache, values, first, max(counts), lse=True, max_seqlen_k=640, soft_cap=soft_cap, **table(k, kind)
        )
        for b in range(len(counts)):
            own, features = slice(first[b], first[b + 1]), Features(window=BOTTOM_RIGHT, soft_cap=soft_cap)
            check(out[own], lse[:, own], q[own], ks[b], vs[b], features, dtype)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("in_pages", [False, True])
def test_append_with_rotary_embedding(typed: Typed, in_pages: bool, interleaved: bool) -> None:
    dispatcher, dtype = typed
    kind, rng = DTYPES[dtype], np.random.default_rng(5)
    lengths, new, heads, d = (6, 0, 15), 3, 2, 40
    old = requests(rng, lengths, heads, d, dtype)
    k, v = (rng.standard_normal((3, new, heads, d)).astype(kind) for _ in range(2))
    q = rng.standard_normal((3, new, 4, d)).astype(kind)
    angles = rng.standard_normal((40, 12)) * 3
    cos, sin = np.cos(angles).astype(kind), np.sin(angles).astype(kind)
    turned = [rotated(k[b], cos, sin, lengths[b], interleaved).astype(kind) for b in range(3)]
    given: dict[str, Any] = {"q": q, "cos": cos, "sin": sin, "interleaved": interleaved}
    if in_pages:
        made = paged([np.concatenate([one, np.zeros((new, heads, d), kind)]) for one in old], 8, rng)
        held = Pages(made.cache, lengths, made.block_table, made.indptr, made.indices, made.last_page_lengths)
        k_wanted, v_wanted = append(made.cache, held, turned), append(made.cache, held, list(v))
        k_cache, v_cache = made.cache.copy(), made.cache.copy()
        given["page_table"] = made.block_table
    else:
        k_cache, v_cache = (np.full((3, 20, heads, d), np.nan, kind) for _ in range(2))
        k_wanted, v_wanted = k_cache.copy(), v_cache.copy()
        for b in range(3):
            k_wanted[b, lengths[b] : lengths[b] + new] = turned[b]
            v_wanted[b, lengths[b] : lengths[b] + new] = v[b]
    found = dispatcher.append_kv(k, v, k_cache, v_cache, np.array(lengths, np.int32), **given)
    near = {"fp32": 2e-6, "fp16": 4e-3, "bf16": 4e-2}[dtype]
    np.testing.assert_allclose(k_cache.astype(np.float64), k_wanted.astype(np.float64), atol=near)
    np.testing.assert_array_equal(v_cache.astype(np.float64), v_wanted.astype(np.float64))
    for b in range(3):
        wanted = rotated(q[b], cos, sin, lengths[b], interleaved)
        np.testing.assert_allclose(found[b].astype(np.float64), wanted, atol=near)


def test_a_full_cache_is_refused(dispatcher: Dispatcher) -> None:
    cache = np.zeros((2, 2, 5, 1, 8), np.float32)
    new = np.ones((2, 2, 1, 8), np.float32)
    assert dispatcher.append_kv(new, 2 * new, cache[0], cache[1], np.array([0, 3], np.int32)) is None
    assert cache[0].sum() == 2 * 2 * 8 and cache[1].sum() == 2 * 2 * 2 * 8
    with pytest.raises(LaunchError, match=r"request 1 has 4 keys and gets 2; the cache holds 5"):
        dispatcher.append_kv(new, new, cache[0], cache[1], np.array([0, 4], np.int32))
