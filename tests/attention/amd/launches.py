"""Launches of forward kernels in the simulator, and what they must give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attention.amd.compiled import Compiled
from attention.amd.memory import Factors, Memory, mask_number, poisoned, worst
from attention.amd.structs import Scores, Strides, strides
from attention.masks import FULL, Window
from attention.philox import random_bytes
from attention.reference import Features, forward

SEED, OFFSET = 1234, (1 << 32) - 40  # of dropout; the sum of offset and lane passes 32 bits


@dataclass(frozen=True)
class Problem:
    """Lengths, heads, and the values of features that the kernel has."""

    queries: int
    keys: int
    heads: int = 2
    kv_heads: int = 1
    batch: int = 1
    window: Window = FULL
    cap: float = 0.0
    keep: float = 1.0


@dataclass(frozen=True)
class Errors:
    """The largest error of O, see :meth:`Factors.error`, and of LSE (0 where the kernel has none)."""

    o: float
    lse: float


def errors(made: Compiled, problem: Problem) -> Errors:
    """Launch a kernel on random operands and compare with float64. NaN and a wrong infinity are infinitely wrong."""
    spec, rng, memory = made.spec, np.random.default_rng(0), Memory()
    p, b, factors = problem, problem.batch, Factors(made, memory)
    q = factors.draw(rng, "q", (b, p.queries, p.heads, spec.hdim_q))
    k = factors.draw(rng, "k", (b, p.keys, p.kv_heads, spec.hdim_q))
    v = factors.draw(rng, "v", (b, p.keys, p.kv_heads, spec.hdim_v))
    o = poisoned((b, p.queries, p.heads, spec.hdim_v), factors.result)
    lse = poisoned((b, p.heads, p.queries), np.float32)
    slopes = rng.random(p.heads).astype(np.float32)
    bias = rng.standard_normal((b, p.heads, p.queries, p.keys)).astype(np.float32 if factors.narrow else factors.dtype)
    drawn = np.zeros(bias.shape, np.uint8)
    square = Strides(p.keys, p.queries * p.keys, p.heads * p.queries * p.keys)
    arguments = Scores(
        q=memory.read("Q", q),
        k=memory.read("K", k),
        v=memory.read("V", v),
        o=memory.write("O", o),
        bias=memory.read("bias", slopes if spec.bias == "alibi" else bias),
        lse=memory.write("LSE", lse),
        random_bytes=memory.write("R", drawn),
        seed=SEED,
        offset=OFFSET,
        seqlen_q=p.queries,
        seqlen_k=p.keys,
        hdim_q=spec.hdim_q,
        hdim_v=spec.hdim_v,
        heads=p.heads,
        head_ratio=p.heads // p.kv_heads,
        q_strides=strides(q),
        k_strides=strides(k),
        v_strides=strides(v),
        o_strides=strides(o),
        bias_strides=square,
        random_strides=square,
        lse_head_stride=p.queries,
        lse_batch_stride=p.heads * p.queries,
        window_left=p.window.left,
        window_right=p.window.right,
        mask=mask_number(p.window),
        scale=1 / math.sqrt(spec.hdim_q),
        soft_cap=p.cap,
        keep=p.keep,
        **factors.given,
    )
    memory.launch(made, arguments, (p.heads, math.ceil(p.queries / spec.tile.m0), b))
    largest = [0.0, 0.0]
    for request in range(b):
        features = Features(
            soft_cap=p.cap,
            bias=bias[request] if spec.bias == "elementwise" else None,
            slopes=slopes if spec.bias == "alibi" else None,
            window=p.window,
            kept=drawn[request] <= int(p.keep * 255) if spec.dropout else None,
            keep=p.keep,
        )
        rows = [factors.values(n, one[request].transpose(1, 0, 2)) for n, one in zip("qkv", (q, k, v), strict=True)]
        wanted = forward(*rows, features)
        largest[0] = max(largest[0], factors.error(o[request].transpose(1, 0, 2), wanted, rows[2]))
        if spec.lse:
            largest[1] = max(largest[1], worst(lse[request], wanted.lse))
    if spec.dropout:
        np.testing.assert_array_equal(drawn, random_bytes(drawn.shape, SEED, OFFSET))
    return Errors(*largest)
