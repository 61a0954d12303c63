"""Append, decoding and prefill on CPUs with keys of several blocks and splits, out of pages of both kinds of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention.masks import BOTTOM_RIGHT, FULL, Window
from attention.pages import Pages, paged
from attention.reference import Features, forward
from attention.runtime.caches import check_append, table
from attention.runtime.cases import DTYPES, starts
from kernelwright.dispatch import ArrayError, Dispatcher

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


def check(out: Array, lse: Array, q: Array, k: Array, v: Array, features: Features, dtype: str) -> None:
    """O and LSE (rows first) of one request."""
    wanted = forward(*(each.transpose(1, 0, 2) for each in (q, k, v)), features)
    np.testing.assert_allclose(out.transpose(1, 0, 2).astype(np.float64), wanted.o, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(lse, wanted.lse, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize("size", [1, 256])
@pytest.mark.parametrize(("queries", "window"), [(1, None), (2, (200, 0))])
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


@pytest.mark.parametrize("where", ["pages", "contiguous", "side by side"])
def test_append_with_rotary_embedding(typed: Typed, where: str) -> None:
    dispatcher, dtype = typed
    for interleaved in (False, True):
        check_append(dispatcher, where, interleaved, dtype)


def test_a_full_cache_is_refused(dispatcher: Dispatcher) -> None:
    cache = np.zeros((2, 2, 5, 1, 8), np.float32)
    new = np.ones((2, 2, 1, 8), np.float32)
    assert dispatcher.append_kv(new, 2 * new, cache[0], cache[1], np.array([0, 3], np.int32)) is None
    assert cache[0].sum() == 2 * 2 * 8 and cache[1].sum() == 2 * 2 * 2 * 8
    with pytest.raises(ArrayError, match=r"request 1 has 4 keys and gets 2; the cache holds 5"):
        dispatcher.append_kv(new, new, cache[0], cache[1], np.array([0, 4], np.int32))


def test_two_requests_do_not_write_one_row(dispatcher: Dispatcher) -> None:
    new = np.ones((3, 2, 1, 16), np.float32)
    for pages in (6, 3000):  # rows are marked on the stack, or in a workspace
        cache, other = np.zeros((pages, 8, 1, 16), np.float32), np.zeros((pages, 8, 1, 16), np.float32)
        last = pages - 1

        def append(lengths: list[int], pairs: list[list[int]], cache: Any = cache, other: Any = other) -> None:
            dispatcher.append_kv(
                new, 2 * new, cache, other, np.array(lengths, np.int32), page_table=np.array(pairs, np.int32)
            )

        append([3, 7, 8], [[1, 0], [1, 2], [1, last]])  # page 1 is shared: rows 3 and 4, 7, and none
        assert cache[1, [3, 4, 7]].all() and cache[2, 0].all() and cache[last, :2].all() and cache.sum() == 6 * 16
        append([3, 5, 7], [[1, 0], [1, 2], [1, last]])  # side by side
        for lengths, pairs, words in (
            ([3, 4, 0], [[1, 0], [1, 2], [3, 4]], "requests 0 and 1 both write row 4 of page 1"),
            ([0, 8, 7], [[4, 0], [1, last], [2, last]], f"requests 1 and 2 both write row 0 of page {last}"),
            ([0, 3, 0], [[4, 0], [1, 2], [4, 0]], "requests 0 and 2 both write row 0 of page 4"),
        ):
            with pytest.raises(ArrayError, match=rf"{words}; give each request pages of its own"):
                append(lengths, pairs)
    cache = np.zeros((4, 1, 1, 16), np.float32)
    with pytest.raises(ArrayError, match=r"requests 0 and 0 both write row 0 of page 2"):
        dispatcher.append_kv(
            new[:1], new[:1], cache, cache.copy(), np.array([0], np.int32), page_table=np.array([[2, 2]], np.int32)
        )


def test_last_pages_hold_one_key_to_a_page_of_them(dispatcher: Dispatcher) -> None:
    cache, q = np.zeros((3, 8, 1, 16), np.float32), np.zeros((2, 1, 1, 16), np.float32)
    starts_of = {"page_table": np.array([1, 2, 0], np.int32), "page_indptr": np.array([0, 1, 3], np.int32)}
    for wrong in (0, -1, 9, -(2**31), 2**31 - 1):
        last = np.array([1, wrong], np.int32)
        with pytest.raises(
            ArrayError, match=rf"last_page_lengths of request 1 is {wrong}; allowed: 1 to page_size = 8"
        ):
            dispatcher.decode(q, cache, cache, last_page_lengths=last, max_seqlen_k=24, **starts_of)
    none = {"page_table": np.array([1], np.int32), "page_indptr": np.array([0, 1, 1], np.int32)}
    last = np.array([8, 99], np.int32)  # request 1 has no page
    assert not dispatcher.decode(q, cache, cache, last_page_lengths=last, max_seqlen_k=24, **none).any()


def test_pages_that_the_cache_lacks_are_refused(dispatcher: Dispatcher) -> None:
    cache, q, lengths = np.zeros((3, 8, 1, 16), np.float32), np.zeros((2, 1, 1, 16), np.float32), [5, 16]
    good = np.array([[1, 77], [2, 0]], np.int32)  # the second page of request 0 is not read
    assert not dispatcher.decode(q, cache, cache, np.array(lengths, np.int32), page_table=good).any()
    for page in (3, -1):
        table = np.array([[1, 0], [2, page]], np.int32)
        message = rf"page 1 of request 1 is {page}; allowed: 0 to 2"
        with pytest.raises(ArrayError, match=message):
            dispatcher.decode(q, cache, cache, np.array(lengths, np.int32), page_table=table)
        with pytest.raises(ArrayError, match=message):
            new = np.ones((2, 1, 1, 16), np.float32)
            dispatcher.append_kv(new, new, cache, cache.copy(), np.array([5, 15], np.int32), page_table=table)
    listed = {"page_table": np.array([1, 2, 9], np.int32), "last_page_lengths": np.array([5, 8], np.int32)}
    starts_of = {"page_indptr": np.array([0, 1, 3], np.int32), "max_seqlen_k": 16}
    with pytest.raises(ArrayError, match=r"page 1 of request 1 is 9; allowed: 0 to 2"):
        dispatcher.decode(q, cache, cache, **listed, **starts_of)
    listed = {"page_table": np.array([1, 2, 0], np.int32), "last_page_lengths": np.array([5, 8], np.int32)}
    for _ in "known", "again":
        assert not dispatcher.decode(q, cache, cache, **listed, **starts_of).any()
    with pytest.raises(ArrayError, match=r"page_indptr goes to 4; page_table has 3 pages"):
        dispatcher.decode(q, cache, cache, **listed, **{**starts_of, "page_indptr": np.array([0, 1, 4], np.int32)})
