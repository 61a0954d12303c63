"""Caches of K and V in pages: how pages are found (vLLM, SGLang), how elements lie in them, and rotary embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Pages:
    """A cache (pages x page_size x heads x d) of requests with ``lengths`` keys, and both forms of its table.

    ``block_table`` (vLLM) has a row of pages for each request, filled up with -1. ``indices`` (SGLang) lists the pages
    of all requests, those of request b from ``indptr[b]`` to ``indptr[b + 1]``, of whose last page
    ``last_page_lengths[b]`` keys count.
    """

    cache: Array
    lengths: tuple[int, ...]
    block_table: Array
    indptr: Array
    indices: Array
    last_page_lengths: Array


def paged(requests: Sequence[Array], page_size: int, rng: np.random.Generator, spare: int = 3) -> Pages:
    """Pages in random order that hold requests (keys x heads x d), with NaN wherever no key is, also in spare pages."""
    counts = [-(-len(request) // page_size) for request in requests]
    order = rng.permutation(sum(counts) + spare)
    heads, d = requests[0].shape[1:]
    cache = np.full((len(order), page_size, heads, d), np.nan, requests[0].dtype)
    table = np.full((len(requests), max(counts, default=0)), -1, np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    for b, request in enumerate(requests):
        own = order[indptr[b] : indptr[b + 1]]
        table[b, : counts[b]] = own
        for place, page in enumerate(own):
            rows = request[place * page_size : (place + 1) * page_size]
            cache[page, : len(rows)] = rows
    last = [(len(request) - 1) % page_size + 1 if len(request) else 0 for request in requests]
    lengths = tuple(len(request) for request in requests)
    return Pages(cache, lengths, table, indptr, order[: indptr[-1]].astype(np.int32), np.array(last, np.int32))


def from_block_table(cache: Array, row: Array, length: int) -> Array:
    """The keys x heads x d of a request out of its row of a vLLM table."""
    rows: Array = cache[row[: -(-length // cache.shape[1])]].reshape(-1, *cache.shape[2:])[:length]
    return rows


def from_indices(cache: Array, pages: Pages, request: int) -> Array:
    """The same out of an SGLang table."""
    own = pages.indices[pages.indptr[request] : pages.indptr[request + 1]]
    unused = cache.shape[1] - int(pages.last_page_lengths[request]) if len(own) else 0
    rows: Array = cache[own].reshape(-1, *cache.shape[2:])
    return rows[: len(rows) - unused]


def vectorized_k(cache: Array) -> Array:
    """pages x heads x d/x x page_size x x, where x elements take 16 bytes: how vLLM stores K."""
    pages, size, heads, d = cache.shape
    x = 16 // cache.itemsize
    moved: Array = cache.reshape(pages, size, heads, d // x, x).transpose(0, 2, 3, 1, 4).copy()
    return moved


def vectorized_v(cache: Array) -> Array:
    """pages x heads x page_size/x x d x x: neighbouring keys of one element lie side by side."""
    pages, size, heads, d = cache.shape
    x = 16 // cache.itemsize
    moved: Array = cache.reshape(pages, size // x, x, heads, d).transpose(0, 3, 1, 4, 2).copy()
    return moved


def append(cache: Array, pages: Pages, new: Sequence[Array]) -> Array:
    """The cache after the keys of ``new`` (keys x heads x d for each request) stand behind those that are there.

    AssertionError where a request's row of the block table has too few pages.
    """
    filled = cache.copy()
    size = cache.shape[1]
    for b, rows in enumerate(new):
        for place, row in enumerate(rows, start=pages.lengths[b]):
            known = pages.block_table[b]
            page = int(known[place // size]) if place // size < len(known) else -1
            assert page >= 0, f"request {b} has no page for key {place}"
            filled[page, place % size] = row
    return filled


def rotated(x: Array, cos: Array, sin: Array, first: int, interleaved: bool) -> Array:
    """Rotary embedding of rows x heads x d that stand at ``first`` and behind; cos and sin are places x rotary/2.

    Interleaved embedding turns neighbours, the other one elements that are rotary/2 apart; the rest stays as it is.
    Source: Su et al., "RoFormer", 2021.
    """
    half = cos.shape[1]
    c, s = (table[first : first + len(x), None].astype(np.float64) for table in (cos, sin))
    turned = x.astype(np.float64).copy()
    one, two = slice(0, half), slice(half, 2 * half)
    if interleaved:
        one, two = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    a, b = turned[..., one].copy(), turned[..., two].copy()
    turned[..., one], turned[..., two] = a * c - b * s, a * s + b * c
    return turned
