"""Launches of kernels that append keys to a cache, in the simulator, and what they must leave there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from attention.amd.compiled import Compiled
from attention.amd.memory import Array, Memory, element
from attention.amd.structs import Append, strides
from attention.pages import append, paged, rotated


@dataclass(frozen=True)
class Appended:
    """Requests whose caches hold ``held`` keys each get ``new`` ones; Q has ``queries`` rows.

    The cache is in pages of ``page_size`` keys in random order, or, with 0, a row for each request, in another order.
    """

    held: tuple[int, ...]
    new: int
    queries: int = 1
    heads: int = 2
    kv_heads: int = 1
    page_size: int = 0
    rotary_dim: int = 0


@dataclass(frozen=True)
class Left:
    """Errors of K, V and Q relative to their largest elements, and whether anything else in the caches changed."""

    k: float
    v: float
    q: float
    touched: bool


def appended(made: Compiled, problem: Appended) -> Left:
    """Launch a kernel on random operands and compare everything in its caches."""
    spec, p, rng, memory = made.spec, problem, np.random.default_rng(1), Memory()
    dtype, batch, hdim = element(made, spec.dtype.inputs), len(p.held), spec.hdim_q

    def random(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    q, k_new, v_new = random(batch, p.queries, p.heads, hdim), *(random(batch, p.new, p.kv_heads, hdim) for _ in "kv")
    places = max(p.held) + max(p.new, p.queries)
    angles = rng.random((places, p.rotary_dim // 2)) * 2 * math.pi
    cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    given = q.copy()
    k_turned, q_turned = (
        np.stack([rotated(row, cos, sin, n, spec.rope == "interleaved") for row, n in zip(rows, p.held, strict=True)])
        for rows in (k_new, q)
    )
    room = [random(n + p.new, p.kv_heads, hdim) for n in p.held]
    pages = [paged(room, p.page_size or max(map(len, room)) + 2, np.random.default_rng(5)) for _ in "kv"]
    filled = [one.cache.copy() for one in pages]
    wanted = [
        append(one.cache, replace(one, lengths=p.held), list(new.astype(np.float64).astype(dtype)))
        for one, new in zip(pages, (k_turned if spec.rope != "none" else k_new, v_new), strict=True)
    ]
    rows = pages[0].block_table[:, 0].copy()
    held = np.array(p.held, np.int32)
    arguments = Append(
        q=memory.write("Q", q),
        k=memory.write("K", filled[0]),
        v=memory.write("V", filled[1]),
        k_new=memory.read("new K", k_new),
        v_new=memory.read("new V", v_new),
        cosines=memory.read("cosines", cos),
        sines=memory.read("sines", sin),
        lengths_k=memory.read("lengths", held),
        cache_rows=memory.read("rows", rows),
        pages=memory.read("pages", pages[0].block_table),
        seqlen_q=p.queries if spec.rope != "none" else 0,
        seqlen_new=p.new,
        hdim_q=hdim,
        hdim_v=hdim,
        heads=p.heads,
        head_ratio=p.heads // p.kv_heads,
        q_strides=strides(q),
        k_strides=strides(filled[0]),
        v_strides=strides(filled[1]),
        k_new_strides=strides(k_new),
        v_new_strides=strides(v_new),
        rotary_dim=p.rotary_dim,
        turn_by_row=1,
        pages_stride=pages[0].block_table.shape[1],
        page_size=p.page_size,
    )
    tiles = max(math.ceil(p.queries / spec.tile.m0), math.ceil(p.new / spec.tile.n0))
    memory.launch(made, arguments, (tiles, p.heads, batch))
    errors = [_error(cache, right) for cache, right in zip(filled, wanted, strict=True)]
    untouched = all(_same_nan(cache, right) for cache, right in zip(filled, wanted, strict=True))
    turned = _error(q, q_turned if spec.rope != "none" else given)
    return Left(errors[0], errors[1], turned, not untouched)


def _error(actual: Array, wanted: Array) -> float:
    a, b = np.nan_to_num(actual.astype(np.float64)), np.nan_to_num(wanted.astype(np.float64))
    return float(np.abs(a - b).max() / np.abs(b).max())


def _same_nan(actual: Array, wanted: Array) -> bool:
    return bool((np.isnan(actual.astype(np.float64)) == np.isnan(wanted.astype(np.float64))).all())
