"""decode(), prefill() and append_kv(): caches of K and V, contiguous and in pages of both kinds of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention.masks import BOTTOM_RIGHT, FULL, Window
from attention.pages import append, paged, rotated
from attention.reference import Features, forward
from attention.runtime.cases import starts
from kernelwright.dispatch import ArrayError, Dispatcher

Array = np.ndarray[Any, np.dtype[Any]]
LENGTHS = (37, 5, 0, 64)
HEADS, KV_HEADS, D, DV = 4, 2, 16, 24


def requests(rng: np.random.Generator, lengths: tuple[int, ...], heads: int, d: int) -> list[Array]:
    return [rng.standard_normal((length, heads, d)).astype(np.float32) for length in lengths]


def table(pages: Any, kind: str) -> dict[str, Array]:
    """The options that describe a page table of one kind."""
    if kind == "block":
        return {"page_table": pages.block_table, "seqlens_k": np.array(pages.lengths, np.int32)}
    return {
        "page_table": pages.indices, "page_indptr": pages.indptr, "last_page_lengths": pages.last_page_lengths
    }  # fmt: skip


def check(out: Array, lse: Array, q: Array, k: Array, v: Array, features: Features) -> None:
    """O and LSE (rows first) of one request."""
    wanted = forward(*(each.transpose(1, 0, 2) for each in (q, k, v)), features)
    np.testing.assert_allclose(out.transpose(1, 0, 2), wanted.o, atol=1e-5)
    np.testing.assert_allclose(lse, wanted.lse, atol=1e-5)


@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize(("queries", "window"), [(1, None), (3, None), (2, (20, 0))])
def test_decode_out_of_pages(naive: Dispatcher, kind: str, queries: int, window: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(queries)
    ks, vs = requests(rng, LENGTHS, KV_HEADS, D), requests(rng, LENGTHS, KV_HEADS, DV)
    k = paged(ks, 16, rng)
    values = np.full((*k.cache.shape[:-1], DV), np.nan, np.float32)
    for b, rows in enumerate(vs):  # V lies in the pages of K
        for place, page in enumerate(k.block_table[b][: -(-len(rows) // 16)]):
            part = rows[place * 16 : place * 16 + 16]
            values[page, : len(part)] = part
    q = rng.standard_normal((len(LENGTHS), queries, HEADS, D)).astype(np.float32)
    for splits in (0, 1, 3):
        out, lse = naive.decode(
            q, k.cache, values, lse=True, window=window, max_seqlen_k=64, num_splits=splits, **table(k, kind)
        )
        mask = Window(*window, True) if window else BOTTOM_RIGHT if queries > 1 else FULL
        for b in range(len(LENGTHS)):
            check(out[b], lse[b], q[b], ks[b], vs[b], Features(window=mask))


@pytest.mark.parametrize("kind", ["block", "list"])
def test_prefill_of_ragged_requests(naive: Dispatcher, kind: str) -> None:
    rng = np.random.default_rng(3)
    ks = requests(rng, LENGTHS, KV_HEADS, D)
    k = paged(ks, 4, rng)
    counts = (9, 5, 3, 1)
    q = rng.standard_normal((sum(counts), HEADS, D)).astype(np.float32)
    first = starts(counts)
    out, lse = naive.prefill(
        q, k.cache, k.cache.copy(), first, max(counts), lse=True, max_seqlen_k=64, soft_cap=2.0, **table(k, kind)
    )
    for b in range(len(counts)):
        own = slice(first[b], first[b + 1])
        check(out[own], lse[:, own], q[own], ks[b], ks[b], Features(window=BOTTOM_RIGHT, soft_cap=2.0))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("where", ["pages", "contiguous", "side by side"])
def test_append_with_rotary_embedding(naive: Dispatcher, where: str, interleaved: bool) -> None:
    rng = np.random.default_rng(5)
    lengths, new = (6, 0, 15), 3
    old = requests(rng, lengths, KV_HEADS, D)
    k, v = (rng.standard_normal((3, new, KV_HEADS, D)).astype(np.float32) for _ in range(2))
    q = rng.standard_normal((3, new, HEADS, D)).astype(np.float32)
    angles = rng.standard_normal((40, 4)).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    turned = [rotated(k[b], cos, sin, lengths[b], interleaved).astype(np.float32) for b in range(3)]
    given: dict[str, Any] = {"q": q, "cos": cos, "sin": sin, "interleaved": interleaved}
    if where == "pages":
        pages = paged([np.concatenate([one, np.zeros((new, KV_HEADS, D), np.float32)]) for one in old], 8, rng)
        before = paged(old, 8, np.random.default_rng(0))
        held = type(pages)(pages.cache, lengths, pages.block_table, pages.indptr, pages.indices, before.indptr)
        k_wanted, v_wanted = append(pages.cache, held, turned), append(pages.cache, held, list(v))
        k_cache, v_cache = pages.cache.copy(), pages.cache.copy()
        given["page_table"] = pages.block_table
    else:
        both = np.full((3, 2, 20, KV_HEADS, D), np.nan, np.float32)  # K and V of a request one behind the other
        k_cache, v_cache = (
            (both[:, 0], both[:, 1]) if where == "side by side" else (both[:, 0].copy(), both[:, 1].copy())
        )
        k_wanted, v_wanted = k_cache.copy(), v_cache.copy()
        for b in range(3):
            k_wanted[b, lengths[b] : lengths[b] + new] = turned[b]
            v_wanted[b, lengths[b] : lengths[b] + new] = v[b]
    found = naive.append_kv(k, v, k_cache, v_cache, np.array(lengths, np.int32), **given)
    np.testing.assert_allclose(k_cache, k_wanted, atol=1e-6)
    np.testing.assert_array_equal(v_cache, v_wanted)
    for b in range(3):
        np.testing.assert_allclose(found[b], rotated(q[b], cos, sin, lengths[b], interleaved), atol=1e-6)


def test_appending_without_rotary_embedding_copies(naive: Dispatcher) -> None:
    cache = np.zeros((2, 2, 5, 1, 8), np.float32)
    new = np.ones((2, 2, 1, 8), np.float32)
    assert naive.append_kv(new, 2 * new, cache[0], cache[1], np.array([0, 3], np.int32)) is None
    assert cache[0].sum() == 2 * 2 * 8 and cache[1].sum() == 2 * 2 * 2 * 8
    assert (cache[0, 1, 3:] == 1).all() and (cache[0, 0, :2] == 1).all()
    with pytest.raises(ArrayError, match=r"cos and sin belong together"):
        naive.append_kv(new, new, cache[0], cache[1], np.array([0, 3], np.int32), q=new)
