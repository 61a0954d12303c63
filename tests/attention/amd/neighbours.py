"""Problems of one request and one head of K and V among neighbours that are NaN.

Neighbours are the other heads and requests, gaps between rows and between heads, rows that do not count, pages of
nobody and the rest of a request's last page. Tables of pages go on with numbers of no page. Who reads a neighbour and
lets it take part in a sum is found out, and who writes one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from attention.masks import BOTTOM_RIGHT, FULL
from attention.pages import Pages, paged, rotated
from attention.reference import Features, backward, forward
from attention.runtime.cases import starts
from kernelwright.dispatch import Dispatcher

Array = np.ndarray[Any, np.dtype[Any]]
BF16 = np.dtype(ml_dtypes.bfloat16)
GAP = 2  # elements between rows: 4 bytes, the alignment that kernels ask for
NO_PAGE = 2**30
_CANARY = 0x7FC3  # a NaN
_ATOL = 2e-2  # of the largest element, of numbers that are rounded to bf16 twice
HEADS, KV_HEADS = 4, 2
HEADS_CLEAN = ((0, 0), (1, 1))
"""Requests and heads of K and V: the first ones of memory and the last ones."""


@dataclass(frozen=True)
class Clean:
    """Head dimensions, and the request and the head of K and V that are numbers."""

    hdim: int
    hdim_v: int
    request: int = 0
    kv_head: int = 0

    @property
    def heads(self) -> slice:
        """The heads of Q that look at the clean head."""
        ratio = HEADS // KV_HEADS
        return slice(self.kv_head * ratio, (self.kv_head + 1) * ratio)


class Among:
    """Arrays of requests x rows x heads x elements in rooms that are NaN around them and in them."""

    def __init__(self, clean: Clean, seed: int = 0) -> None:
        self.clean = clean
        self._rng = np.random.default_rng(seed)
        self._written: list[tuple[Array, Array]] = []

    def room(self, shape: tuple[int, ...]) -> Array:
        """A view of NaN, with gaps behind its elements and behind the last head."""
        room = np.full((*shape[:-2], shape[-2] + 1, shape[-1] + GAP), _CANARY, np.uint16).view(BF16)
        return room[..., : shape[-2], : shape[-1]]

    def read(self, name: str, *shape: int) -> Array:
        """q, k, v or do: requests x rows x heads x elements."""
        view = self.room(shape)
        heads = self.clean.heads if name in ("q", "do") else slice(self.clean.kv_head, self.clean.kv_head + 1)
        one = view[self.clean.request, :, heads]
        one[...] = self._rng.standard_normal(one.shape).astype(BF16)
        return view

    def written(self, *shape: int) -> Array:
        """A result; what lies beside it must stay as it is."""
        view = self.room(shape)
        assert view.base is not None
        beside = np.ones(view.base.shape, bool)
        beside[..., : shape[-2], : shape[-1]] = False
        self._written.append((view.base, beside))
        return view

    def check_beside(self) -> None:
        """Nothing was written beside a result."""
        for room, beside in self._written:
            assert (room.view(np.uint16)[beside] == _CANARY).all(), "what lies beside a result was written"


def by_heads(array: Array, clean: Clean, heads: slice | None = None) -> Array:
    """The clean request's and heads' rows of an array, heads in front."""
    own = slice(clean.kv_head, clean.kv_head + 1) if heads is None else heads
    return array[clean.request][:, own].transpose(1, 0, 2).astype(np.float64)


def check(actual: Array, wanted: Array, what: str) -> None:
    """Finite and right."""
    wrong = int((~np.isfinite(actual.astype(np.float64))).sum())
    assert wrong == 0, f"{what}: {wrong} of {actual.size} numbers are NaN or infinite"
    error = float(np.abs(actual.astype(np.float64) - wanted).max(initial=0.0))
    top = max(1e-3, float(np.abs(wanted).max(initial=0.0)))
    assert error <= _ATOL * top, f"{what}: off by {error}, of {top}"


def _check_forward(clean: Clean, q: Array, k: Array, v: Array, o: Array, lse: Array | None, features: Features) -> None:
    wanted = forward(by_heads(q, clean, clean.heads), by_heads(k, clean), by_heads(v, clean), features)
    check(by_heads(o, clean, clean.heads), wanted.o, "O")
    if lse is not None:
        check(lse, wanted.lse, "LSE")


def batch(dispatcher: Dispatcher, clean: Clean) -> None:
    """Forward, requests of one length."""
    made = Among(clean)
    q, k = made.read("q", 2, 40, HEADS, clean.hdim), made.read("k", 2, 150, KV_HEADS, clean.hdim)
    v, o = made.read("v", 2, 150, KV_HEADS, clean.hdim_v), made.written(2, 40, HEADS, clean.hdim_v)
    lse = np.full((2, HEADS, 40), np.nan, np.float32)
    dispatcher.attention(q, k, v, o, lse=lse, mask="bottom_right", num_splits=1)
    features = Features(window=BOTTOM_RIGHT)
    _check_forward(clean, q, k, v, o, lse[clean.request, clean.heads], features)
    made.check_beside()


def group(dispatcher: Dispatcher, clean: Clean) -> None:
    """Forward, requests with lengths of their own, and rows behind each one's keys that do not count."""
    made, queries, keys, room = Among(clean), (40, 9), (70, 33), (80, 40)
    q, k, v = (
        made.read(name, 2, rows, heads, hdim)
        for name, rows, heads, hdim in (
            ("q", 40, HEADS, clean.hdim),
            ("k", 80, KV_HEADS, clean.hdim),
            ("v", 80, KV_HEADS, clean.hdim_v),
        )
    )
    flat = [ragged(made, one, lengths) for one, lengths in ((q, queries), (k, room), (v, room))]
    for one in flat[1:]:  # rows that do not count
        for b, first in enumerate(starts(room)[:-1]):
            one[first + keys[b] : first + room[b]] = np.nan
    o = made.written(sum(queries), HEADS, clean.hdim_v)
    lse = np.full((HEADS, sum(queries)), np.nan, np.float32)
    dispatcher.attention(
        *flat, o, lse=lse, mask="bottom_right", cu_seqlens_q=starts(queries), cu_seqlens_k=starts(room),
        max_seqlen_q=max(queries), max_seqlen_k=max(keys), seqlens_k=np.array(keys, np.int32), num_splits=1,
    )  # fmt: skip
    n, m, first = queries[clean.request], keys[clean.request], int(starts(queries)[clean.request])
    features = Features(window=BOTTOM_RIGHT)
    own = np.zeros((2, n, HEADS, clean.hdim_v), BF16)
    own[clean.request] = o[first : first + n]
    _check_forward(clean, q[:, :n], k[:, :m], v[:, :m], own, lse[clean.heads, first : first + n], features)
    made.check_beside()


def ragged(made: Among, array: Array, lengths: tuple[int, ...]) -> Array:
    """The first rows of each request, one request behind the other, with the same gaps."""
    view = made.room((sum(lengths), *array.shape[2:]))
    for b, first in enumerate(starts(lengths)[:-1]):
        view[first : first + lengths[b]] = array[b, : lengths[b]]
    return view


def _pages(made: Among, size: int, lengths: tuple[int, ...]) -> tuple[list[Array], list[Array], Pages]:
    """K and V, requests x keys and so on, the caches with gaps, and the tables."""
    clean = made.clean
    rows = [made.read(n, 2, max(lengths), KV_HEADS, d) for n, d in (("k", clean.hdim), ("v", clean.hdim_v))]
    caches = []
    for one in rows:
        pages = paged([one[b, :length] for b, length in enumerate(lengths)], size, np.random.default_rng(7))
        cache = made.room(pages.cache.shape)
        cache[...] = pages.cache
        caches.append(cache)
    return rows, caches, pages


def _block_table(pages: Pages) -> Array:
    tail = np.full((len(pages.lengths), 3), NO_PAGE, np.int32)
    return np.hstack([np.where(pages.block_table < 0, NO_PAGE, pages.block_table), tail]).astype(np.int32)


def _cached(dispatcher: Dispatcher, clean: Clean, queries: int, lse: bool, **options: Any) -> None:
    made, lengths = Among(clean), (150, 70)
    q = made.read("q", 2, queries, HEADS, clean.hdim)
    (k, v), caches, pages = _pages(made, 128, lengths)
    o, length = made.written(2, queries, HEADS, clean.hdim_v), lengths[clean.request]
    sums = np.full((2, HEADS, queries), np.nan, np.float32) if lse else None
    dispatcher.decode(
        q, *caches, np.array(lengths, np.int32), o, page_table=_block_table(pages), max_seqlen_k=max(lengths),
        **({"lse": sums} if lse else {}), **options,
    )  # fmt: skip
    lse_slice = None if sums is None else sums[clean.request, clean.heads]
    window = FULL if queries == 1 else BOTTOM_RIGHT
    _check_forward(clean, q, k[:, :length], v[:, :length], o, lse_slice, Features(window=window))
    made.check_beside()


def splits(dispatcher: Dispatcher, clean: Clean) -> None:
    """Decoding out of pages in parts of the keys, one query."""
    _cached(dispatcher, clean, 1, True, num_splits=3)


def pages_of_tiles(dispatcher: Dispatcher, clean: Clean) -> None:
    """Few queries out of pages."""
    _cached(dispatcher, clean, 5, False, num_splits=1)


def _prefill(dispatcher: Dispatcher, clean: Clean, as_list: bool) -> None:
    made, lengths, queries = Among(clean), (70, 150), (20, 7)
    (k, v), caches, pages = _pages(made, 16, lengths)
    q = made.read("q", 2, max(queries), HEADS, clean.hdim)
    o = made.written(sum(queries), HEADS, clean.hdim_v)
    lse = np.full((HEADS, sum(queries)), np.nan, np.float32)
    table: Mapping[str, Any] = {"page_table": _block_table(pages), "seqlens_k": np.array(lengths, np.int32)}
    if as_list:
        indices = np.append(pages.indices, [NO_PAGE] * 3).astype(np.int32)
        table = {"page_table": indices, "page_indptr": pages.indptr, "last_page_lengths": pages.last_page_lengths}
    flat = ragged(made, q, queries)
    first, n, m = int(starts(queries)[clean.request]), queries[clean.request], lengths[clean.request]
    dispatcher.prefill(flat, *caches, starts(queries), max(queries), out=o, lse=lse, max_seqlen_k=max(lengths), **table)
    own = np.zeros((2, n, HEADS, clean.hdim_v), BF16)
    own[clean.request] = o[first : first + n]
    features = Features(window=BOTTOM_RIGHT)
    _check_forward(clean, q[:, :n], k[:, :m], v[:, :m], own, lse[clean.heads, first : first + n], features)
    made.check_beside()


def prefill(dispatcher: Dispatcher, clean: Clean) -> None:
    """Queries of all requests out of pages by a block table."""
    _prefill(dispatcher, clean, False)


def prefill_by_list(dispatcher: Dispatcher, clean: Clean) -> None:
    """The same by a list of pages."""
    _prefill(dispatcher, clean, True)


def gradients(dispatcher: Dispatcher, clean: Clean) -> None:
    """dQ, dK and dV; heads of Q share those of K and V."""
    made, queries, keys = Among(clean), 40, 70
    q, do = (made.read(name, 2, queries, HEADS, d) for name, d in (("q", clean.hdim), ("do", clean.hdim_v)))
    k, v = (made.read(name, 2, keys, KV_HEADS, d) for name, d in (("k", clean.hdim), ("v", clean.hdim_v)))
    features = Features(window=BOTTOM_RIGHT)
    operands = [by_heads(q, clean, clean.heads), by_heads(k, clean), by_heads(v, clean)]
    done = forward(*operands, features)
    o, lse = made.room((2, queries, HEADS, clean.hdim_v)), np.full((2, HEADS, queries), np.nan, np.float32)
    o[clean.request, :, clean.heads] = done.o.transpose(1, 0, 2).astype(BF16)
    lse[clean.request, clean.heads] = done.lse
    dq = made.written(2, queries, HEADS, clean.hdim)
    dk, dv = (made.written(2, keys, KV_HEADS, d) for d in (clean.hdim, clean.hdim_v))
    dispatcher.attention_backward(q, k, v, o, do, lse, dq=dq, dk=dk, dv=dv, mask="bottom_right")
    wanted = backward(*operands, by_heads(do, clean, clean.heads), features)
    check(by_heads(dq, clean, clean.heads), wanted.dq, "dQ")
    check(by_heads(dk, clean), wanted.dk, "dK")
    check(by_heads(dv, clean), wanted.dv, "dV")
    made.check_beside()


def append(dispatcher: Dispatcher, clean: Clean) -> None:
    """New keys into pages, turned, and queries turned beside them."""
    made, held, new, size = Among(clean), (13, 30), 5, 16
    k, v = (made.read(name, 2, new, KV_HEADS, d) for name, d in (("k", clean.hdim), ("v", clean.hdim_v)))
    q, turned = made.read("q", 2, new, HEADS, clean.hdim), made.written(2, new, HEADS, clean.hdim)
    angles = np.random.default_rng(3).random((64, min(max(8, clean.hdim // 32 * 8), clean.hdim // 2))) * 6
    cos, sin = np.cos(angles).astype(BF16), np.sin(angles).astype(BF16)
    table = np.array([[4, 1, 0, NO_PAGE], [2, 5, 3, NO_PAGE]], np.int32)
    caches = [made.room((7, size, KV_HEADS, d)) for d in (clean.hdim, clean.hdim_v)]
    dispatcher.append_kv(k, v, *caches, np.array(held, np.int32), q=q, q_out=turned, cos=cos, sin=sin, page_table=table)
    places = np.arange(held[clean.request], held[clean.request] + new)
    pages, rows = table[clean.request, places // size], places % size
    k_wanted = rotated(k[clean.request], cos, sin, held[clean.request], False)[:, clean.kv_head]
    check(caches[0][pages, rows, clean.kv_head], k_wanted, "K")
    check(caches[1][pages, rows, clean.kv_head], v[clean.request][:, clean.kv_head].astype(np.float64), "V")
    q_wanted = rotated(q[clean.request], cos, sin, held[clean.request], False)[:, clean.heads]
    check(turned[clean.request][:, clean.heads], q_wanted, "Q")
    for cache in caches:
        untouched = np.ones(cache.shape, bool)
        for b, first in enumerate(held):
            at = np.arange(first, first + new)
            untouched[table[b, at // size], at % size] = False
        assert (np.ascontiguousarray(cache).view(np.uint16)[untouched] == _CANARY).all(), "other rows were written"
    made.check_beside()


PROBLEMS: Mapping[str, Callable[[Dispatcher, Clean], None]] = {
    one.__name__: one for one in (batch, group, splits, pages_of_tiles, prefill, prefill_by_list, gradients, append)
}
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "batch": ("fwd",),
    "group": ("fwd",),
    "splits": ("fwd_splitkv", "fwd_splitkv_combine"),
    "pages_of_tiles": ("fwd_pagedkv",),
    "prefill": ("batch_prefill",),
    "prefill_by_list": ("batch_prefill",),
    "gradients": ("bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"),
    "append": ("fwd_appendkv",),
}
"""Whose kernels each problem launches; together every family."""
