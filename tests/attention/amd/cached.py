"""Launches of kernels that read K and V out of a cache in the simulator: split-KV and combine, paged KV, prefill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.amd.compiled import Compiled
from attention.amd.launches import Errors
from attention.amd.memory import Array, Factors, Memory, mask_number, poisoned, starts, worst
from attention.amd.structs import BLOCK, Combine, PageList, Scores, by_heads, strides
from attention.masks import FULL, Window
from attention.pages import Pages, paged
from attention.reference import Features, forward


@dataclass(frozen=True)
class Cached:
    """Requests with ``keys`` keys each and as many queries, or in group mode with ``queries`` queries each.

    K and V are in pages of ``page_size`` keys in random order, with NaN wherever no key is; 0: one after another.
    Batch prefill finds them in a list or, without ``listed``, in a block table.
    """

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 1
    page_size: int = 0
    listed: bool = True
    splits: int = 1
    window: Window = FULL
    cap: float = 0.0


class Operands:
    """Random Q, K and V of a problem, the arguments that say where they are, and what attention of them gives."""

    def __init__(self, made: Compiled, problem: Cached) -> None:
        self.made, self.problem, self.memory = made, problem, Memory()
        p, spec, rng, self.factors = problem, made.spec, np.random.default_rng(3), Factors(made, self.memory)
        self.dtype = self.factors.dtype
        self.batch, self.group = len(p.keys), spec.group
        assert self.group or len(set(p.queries)) == 1
        self.rows = (1, sum(p.queries)) if self.group else (self.batch, p.queries[0])
        self.q = self.factors.draw(rng, "q", (*self.rows, p.heads, spec.hdim_q))
        self.k, self.v = (
            [self.factors.draw(rng, name, (n, p.kv_heads, d)) for n in p.keys]
            for name, d in (("k", spec.hdim_q), ("v", spec.hdim_v))
        )
        self.starts = starts(p.queries)
        self.slopes = rng.random(p.heads).astype(np.float32)
        self.given = self._given()
        self.given.update(self._cache())

    def _given(self) -> dict[str, Any]:
        p, spec, memory = self.problem, self.made.spec, self.memory
        return {
            "q": memory.read("Q", self.q),
            "q_strides": strides(self.q),
            "bias": memory.read("slopes", self.slopes),
            "seqstart_q": memory.read("starts of Q", self.starts),
            "seqlen_q": max(p.queries),
            "seqlen_k": max(p.keys),
            "hdim_q": spec.hdim_q,
            "hdim_v": spec.hdim_v,
            "heads": p.heads,
            "head_ratio": p.heads // p.kv_heads,
            "window_left": p.window.left,
            "window_right": p.window.right,
            "mask": mask_number(p.window),
            "batch": self.batch,
            "splits": p.splits,
            "scale": 1 / math.sqrt(spec.hdim_q),
            "soft_cap": p.cap,
            "keep": 1.0,
            **self.factors.given,
        }

    def _cache(self) -> dict[str, Any]:
        """Where K and V are: in a row for each request, in a block table's pages, or in a list's."""
        p, spec, memory = self.problem, self.made.spec, self.memory
        self.lengths = np.array(p.keys, np.int32)
        if not spec.paged_kv:
            self.caches = [
                poisoned((self.batch, max(p.keys) + 3, *one[0].shape[1:]), self.dtype) for one in (self.k, self.v)
            ]
            for cache, requests in zip(self.caches, (self.k, self.v), strict=True):
                for row, request in zip(cache, requests, strict=True):
                    row[: len(request)] = request
            if self.group:
                self.caches = [np.concatenate(one)[None] for one in (self.k, self.v)]
                return {**self._kv(), "seqstart_k": memory.read("starts of K", starts(p.keys))}
            return {**self._kv(), "lengths_k": memory.read("lengths", self.lengths)}
        size = p.page_size
        k, v = (paged(one, size, np.random.default_rng(5)) for one in (self.k, self.v))
        self.caches = [k.cache, v.cache]
        if spec.family == "batch_prefill":
            return {**self._kv(), **self._listed(k), "page_count": len(k.cache) * size}
        self.pages = k.block_table
        table = {"pages_stride": self.pages.shape[1], "page_size": size, "page_count": len(k.cache)}
        return {
            **self._kv(),
            **table,
            "pages": memory.read("pages", self.pages),
            "lengths_k": memory.read("lengths", self.lengths),
        }

    def _listed(self, k: Pages) -> dict[str, Any]:
        """The places of keys that a kernel of the same code object makes of a table."""
        made, p, memory = self.made, self.problem, self.memory
        stride = (-(-max(p.keys) // made.spec.tile.n0) + 1) * made.spec.tile.n0
        self.places = np.full((self.batch, stride), -1, np.int32)
        self.ends = np.full((self.batch, 2), -1, np.int32)
        if p.listed:
            table = {
                "pages": memory.read("pages", k.indices),
                "page_starts": memory.read("starts of pages", k.indptr),
                "last_lengths": memory.read("lengths of last pages", k.last_page_lengths),
            }
        else:
            table = {
                "pages": memory.read("pages", k.block_table),
                "lengths_k": memory.read("lengths", self.lengths),
                "pages_stride": k.block_table.shape[1],
            }
        arguments = PageList(
            **table,
            places=memory.write("places", self.places),
            ends=memory.write("ends of places", self.ends),
            page_size=p.page_size,
            places_stride=stride,
            past_end=len(k.cache) * p.page_size,
        )
        grid = (-(-stride // BLOCK), self.batch, 1)
        memory.launch(made, arguments, grid, function=str(made.symbols["page_list"]), block=BLOCK)
        return {
            "pages": memory.read("places", self.places),
            "page_starts": memory.read("ends of places", self.ends),
        }

    def _kv(self) -> dict[str, Any]:
        k, v = self.caches
        return {
            "k": self.memory.read("K", k),
            "v": self.memory.read("V", v),
            "k_strides": strides(k),
            "v_strides": strides(v),
        }

    def errors(self, o: Array, lse: Array | None) -> Errors:
        """``o`` has the rows of Q; ``lse`` is requests x heads x queries, or in group mode 1 x heads x all queries."""
        p, spec = self.problem, self.made.spec
        features = Features(soft_cap=p.cap, window=p.window, slopes=self.slopes if spec.bias == "alibi" else None)
        largest = [0.0, 0.0]
        for b, (k, v) in enumerate(zip(self.k, self.v, strict=True)):
            at, begin = (0, int(self.starts[b])) if self.group else (b, 0)
            rows = slice(begin, begin + p.queries[b])
            arrays = zip("qkv", (self.q[at, rows], k, v), strict=True)
            values = [self.factors.values(name, one.transpose(1, 0, 2)) for name, one in arrays]
            wanted = forward(*values, features)
            largest[0] = max(largest[0], self.factors.error(o[at, rows].transpose(1, 0, 2), wanted, values[2]))
            if lse is not None:
                largest[1] = max(largest[1], worst(lse[at][:, rows], wanted.lse))
        return Errors(*largest)


def split_errors(made: Compiled, combine: Compiled, problem: Cached) -> Errors:
    """A split-KV kernel and the kernel that puts its parts together, against float64."""
    operands = Operands(made, problem)
    p, memory, (batch, rows) = problem, operands.memory, operands.rows
    hdim = made.spec.hdim_v
    o_parts = poisoned((p.splits, batch, p.heads, rows, hdim), np.float32)
    lse_parts = poisoned((p.splits, batch, p.heads, rows), np.float32)
    parts = {
        "split_stride_o": batch * p.heads * rows * hdim,
        "split_stride_lse": batch * p.heads * rows,
    }
    arguments = Scores(
        **operands.given,
        **parts,
        o=memory.write("O", o_parts),
        lse=memory.write("LSE", lse_parts),
        o_strides=by_heads(o_parts[0]),
        lse_head_stride=rows,
        lse_batch_stride=p.heads * rows,
    )
    tiles = math.ceil(max(p.queries) / made.spec.tile.m0)
    memory.launch(made, arguments, (tiles * p.splits, p.heads, operands.batch))
    operands.factors.written_by(combine)
    o = poisoned((batch, rows, p.heads, hdim), operands.factors.result)
    lse = poisoned((batch, p.heads, rows), np.float32)
    own = Memory()
    joined = Combine(
        **parts,
        o_parts=own.read("parts of O", o_parts),
        lse_parts=own.read("parts of LSE", lse_parts),
        o=own.write("O", o),
        lse=own.write("LSE", lse),
        seqstart_q=own.read("starts of Q", operands.starts),
        batch=operands.batch,
        seqlen_q=max(p.queries),
        hdim_v=hdim,
        splits=p.splits,
        part_strides=by_heads(o_parts[0]),
        o_strides=strides(o),
        part_lse_head_stride=rows,
        part_lse_batch_stride=p.heads * rows,
        lse_head_stride=rows,
        lse_batch_stride=p.heads * rows,
        scale_o=own.read("factor of O", np.array([operands.factors.of_o], np.float32)),
    )
    log_splits = max(3, (p.splits - 1).bit_length())
    columns = hdim // combine.spec.tile.n1
    tile = combine.arch.wave_size // (combine.spec.tile.n1 // 4)
    grid = (math.ceil(max(p.queries) / tile) * columns, p.heads, operands.batch)
    own.launch(combine, joined, grid, function=f"{combine.function}{log_splits}")
    return operands.errors(o, lse if combine.spec.lse else None)


def whole_errors(made: Compiled, problem: Cached) -> Errors:
    """A kernel that writes O itself (paged KV, batch prefill), against float64."""
    operands = Operands(made, problem)
    p, memory, spec, (batch, rows) = problem, operands.memory, made.spec, operands.rows
    o = poisoned((batch, rows, p.heads, spec.hdim_v), operands.factors.result)
    lse = poisoned((batch, p.heads, rows), np.float32)
    arguments = Scores(
        **operands.given,
        o=memory.write("O", o),
        lse=memory.write("LSE", lse),
        o_strides=strides(o),
        lse_head_stride=rows,
        lse_batch_stride=p.heads * rows,
    )
    tiles = math.ceil(max(p.queries) / spec.tile.m0)
    grid = (p.heads, operands.batch, tiles) if spec.group else (tiles, p.heads, operands.batch)
    memory.launch(made, arguments, grid)
    return operands.errors(o, lse if spec.lse else None)
