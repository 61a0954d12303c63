"""Launches of the kernels of the backward pass, one after another, in the simulator, and what they must give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.amd.compiled import Compiled
from attention.amd.memory import DTYPES, Array, Memory, mask_number, poisoned, relative, starts
from attention.amd.structs import BLOCK, Clear, Gradients, HeadSum, Strides, by_heads, strides
from attention.masks import FULL, Window
from attention.philox import random_bytes
from attention.reference import Features, backward, forward

SEED, OFFSET = 77, 5


@dataclass(frozen=True)
class Problem:
    """Lengths of each request (all the same in batch mode), heads, and the values of features."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: int = 2
    kv_heads: int = 1
    window: Window = FULL
    keep: float = 1.0


@dataclass(frozen=True)
class Kernels:
    """Those of the three steps."""

    dot: Compiled
    gradients: Compiled
    convert: Compiled


@dataclass(frozen=True)
class Errors:
    """Errors of each gradient relative to its largest element, the sums of dQ, and the bits of dQ."""

    dq: float
    dk: float
    dv: float
    dbias: float
    d: float
    bits: bytes


def errors(kernels: Kernels, problem: Problem) -> Errors:
    """Run the three steps on random operands and compare with float64."""
    run = _Run(kernels, problem)
    run.dot()
    run.clear()
    run.gradients()
    run.sum_heads()
    if not run.spec.max_seq_len_q:  # which leaves dQ as it is to be
        run.convert()
    return run.compared()


class _Run:
    def __init__(self, kernels: Kernels, problem: Problem) -> None:
        self.kernels, self.problem, self.memory = kernels, problem, Memory()
        p, spec, rng = problem, kernels.gradients.spec, np.random.default_rng(2)
        self.spec, dtype = spec, DTYPES[str(spec.dtype)]
        self.group, self.batch = spec.group, len(p.keys)
        rows_q = (1, sum(p.queries)) if spec.group else (self.batch, p.queries[0])
        rows_k = (1, sum(p.keys)) if spec.group else (self.batch, p.keys[0])

        def random(*shape: int) -> Array:
            return rng.standard_normal(shape).astype(dtype)

        self.q, self.do = random(*rows_q, p.heads, spec.hdim_q), random(*rows_q, p.heads, spec.hdim_v)
        self.k, self.v = random(*rows_k, p.kv_heads, spec.hdim_q), random(*rows_k, p.kv_heads, spec.hdim_v)
        self.starts_q, self.starts_k = starts(p.queries), starts(p.keys)
        self.slopes = rng.random(p.heads).astype(np.float32)
        square = (rows_q[0], p.heads, rows_q[1], max(p.keys))
        self.bias = random(*square)
        self.drawn = random_bytes(square, SEED, OFFSET)
        self._forward(rows_q)
        self.d = poisoned(self.lse.shape, np.float32)
        self.slices = -(-max(p.keys) // spec.bwd_tile.n0) if spec.deterministic else 1
        self.sums = poisoned((self.slices, rows_q[0], p.heads, rows_q[1], spec.hdim_q), np.float32)
        self.dq = poisoned(self.q.shape, dtype)
        self.dk, self.dv = (poisoned((*rows_k, p.heads, one.shape[-1]), dtype) for one in (self.k, self.v))
        self.dk_sum, self.dv_sum = poisoned(self.k.shape, dtype), poisoned(self.v.shape, dtype)
        self.dbias, self.random = poisoned(square, dtype), np.zeros(square, np.uint8)
        self.given = self._given()

    def _requests(self) -> list[tuple[int, slice, slice]]:
        """The row of the arrays that each request is in, and its queries and keys there."""
        p = self.problem
        if not self.group:
            return [(b, slice(0, n), slice(0, m)) for b, (n, m) in enumerate(zip(p.queries, p.keys, strict=True))]
        q, k = self.starts_q.tolist(), self.starts_k.tolist()
        return [(0, slice(q[b], q[b + 1]), slice(k[b], k[b + 1])) for b in range(self.batch)]

    def _features(self, at: int, queries: slice, keys: int) -> Features:
        p, spec = self.problem, self.spec
        return Features(
            bias=self.bias[at][:, queries, :keys] if spec.bias == "elementwise" else None,
            slopes=self.slopes if spec.bias == "alibi" else None,
            window=p.window,
            kept=self.drawn[at][:, queries, :keys] <= int(np.float32(p.keep) * 255) if spec.dropout else None,
            keep=p.keep,
        )

    def _forward(self, rows: tuple[int, int]) -> None:
        p = self.problem
        self.o = np.zeros((*rows, p.heads, self.spec.hdim_v), self.do.dtype)
        self.lse = np.zeros((rows[0], p.heads, rows[1]), np.float32)
        for at, queries, keys in self._requests():
            operands = [one.transpose(1, 0, 2) for one in (self.q[at, queries], self.k[at, keys], self.v[at, keys])]
            done = forward(*operands, self._features(at, queries, keys.stop - keys.start))
            self.o[at, queries] = done.o.transpose(1, 0, 2).astype(self.o.dtype)
            self.lse[at][:, queries] = done.lse

    def _given(self) -> Gradients:
        p, spec, memory = self.problem, self.spec, self.memory
        keys = max(p.keys)
        rows = self.lse.shape[2]
        square = Strides(keys, rows * keys, p.heads * rows * keys)
        return Gradients(
            q=memory.read("Q", self.q),
            k=memory.read("K", self.k),
            v=memory.read("V", self.v),
            o=memory.read("O", self.o),
            d_o=memory.read("dO", self.do),
            lse=memory.read("LSE", self.lse),
            d=memory.write("D", self.d),
            dq_sums=memory.write("sums of dQ", self.sums),
            dq=memory.write("dQ", self.dq),
            dk=memory.write("dK", self.dk),
            dv=memory.write("dV", self.dv),
            bias=memory.read("bias", self.slopes if spec.bias == "alibi" else self.bias),
            dbias=memory.write("dbias", self.dbias),
            random_bytes=memory.write("random bytes", self.random),
            seqstart_q=memory.read("starts of Q", self.starts_q),
            seqstart_k=memory.read("starts of K", self.starts_k),
            seed=SEED,
            offset=OFFSET,
            seqlen_q=max(p.queries),
            seqlen_k=keys,
            hdim_q=spec.hdim_q,
            hdim_v=spec.hdim_v,
            heads=p.heads,
            head_ratio=p.heads // p.kv_heads,
            q_strides=strides(self.q),
            k_strides=strides(self.k),
            v_strides=strides(self.v),
            o_strides=strides(self.o),
            do_strides=strides(self.do),
            sums_strides=by_heads(self.sums[0]),
            dq_strides=strides(self.dq),
            dk_strides=strides(self.dk),
            dv_strides=strides(self.dv),
            bias_strides=square,
            dbias_strides=square,
            random_strides=square,
            lse_head_stride=rows,
            lse_batch_stride=p.heads * rows,
            split_stride_sums=self.sums[0].size,
            window_left=p.window.left,
            window_right=p.window.right,
            mask=mask_number(p.window),
            scale=1 / math.sqrt(spec.hdim_q),
            keep=p.keep,
        )

    def _rows(self, made: Compiled) -> None:
        tiles = math.ceil(max(self.problem.queries) / made.spec.tile.m0)
        self.memory.launch(made, self.given, (tiles, self.problem.heads, self.batch))

    def dot(self) -> None:
        self._rows(self.kernels.dot)

    def convert(self) -> None:
        self._rows(self.kernels.convert)

    def clear(self) -> None:
        self._beside("clear", Clear(to=self.sums.ctypes.data, count=self.sums.size), self.sums.size)

    def gradients(self) -> None:
        tiles = 1 if self.spec.max_seq_len_q else math.ceil(max(self.problem.keys) / self.spec.bwd_tile.n0)
        self.memory.launch(self.kernels.gradients, self.given, (tiles, self.problem.heads, self.batch))

    def sum_heads(self) -> None:
        for name, source, to in (("dK", self.dk, self.dk_sum), ("dV", self.dv, self.dv_sum)):
            batch, rows, heads, hdim = to.shape
            arguments = HeadSum(
                source=self.memory.read(name, source),
                to=self.memory.write(f"sum of {name}", to),
                batch=batch,
                rows=rows,
                heads=heads,
                hdim=hdim,
                head_ratio=self.problem.heads // heads,
                source_strides=strides(source),
                to_strides=strides(to),
            )
            self._beside("head_sum", arguments, to.size)

    def _beside(self, name: str, arguments: Any, count: int) -> None:
        made = self.kernels.gradients
        grid = (-(-count // BLOCK), 1, 1)
        self.memory.launch(made, arguments, grid, function=str(made.symbols[name]), block=BLOCK)

    def compared(self) -> Errors:
        p, spec, largest = self.problem, self.spec, [0.0] * 5
        for at, queries, keys in self._requests():
            operands = [one.transpose(1, 0, 2) for one in (self.q[at, queries], self.k[at, keys], self.v[at, keys])]
            count = keys.stop - keys.start
            features = self._features(at, queries, count)
            wanted = backward(*operands, self.do[at, queries].transpose(1, 0, 2), features)
            pairs = [
                (self.dq[at, queries].transpose(1, 0, 2), wanted.dq),
                (self.dk_sum[at, keys].transpose(1, 0, 2), wanted.dk),
                (self.dv_sum[at, keys].transpose(1, 0, 2), wanted.dv),
            ]
            if spec.dbias:
                pairs.append((self.dbias[at][:, queries, :count], wanted.dbias))
                assert not self.dbias[at][:, queries, count:].any()
            else:
                pairs.append((np.zeros(1), np.zeros(1)))
            pairs.append((self.d[at][:, queries], wanted.d * p.keep))
            largest = [max(a, relative(*pair)) for a, pair in zip(largest, pairs, strict=True)]
            if spec.store_randval:
                np.testing.assert_array_equal(self.random[at][:, queries, :count], self.drawn[at][:, queries, :count])
        return Errors(*largest, self.dq.tobytes())
