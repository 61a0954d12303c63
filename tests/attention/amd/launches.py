"""Launches of forward kernels in the simulator, and what they must give."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from attention.amd.compiled import Compiled
from attention.masks import FULL, Window
from attention.philox import random_bytes
from attention.reference import Features, forward
from kernelwright import arch as archs
from kernelwright.simulator.run.launch import Buffer, Simulator

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}

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
    """The largest error of O relative to its largest element, and of LSE (0 where the kernel has none)."""

    o: float
    lse: float


def errors(made: Compiled, problem: Problem) -> Errors:
    """Launch a kernel on random operands and compare with float64. NaN and a wrong infinity are infinitely wrong."""
    spec, rng, dtype = made.spec, np.random.default_rng(0), DTYPES[str(made.spec.dtype)]
    p, b = problem, problem.batch
    q = rng.standard_normal((b, p.queries, p.heads, spec.hdim_q)).astype(dtype)
    k = rng.standard_normal((b, p.keys, p.kv_heads, spec.hdim_q)).astype(dtype)
    v = rng.standard_normal((b, p.keys, p.kv_heads, spec.hdim_v)).astype(dtype)
    o = np.full((b, p.queries, p.heads, spec.hdim_v), np.nan).astype(dtype)
    lse = np.full((b, p.heads, p.queries), np.nan, np.float32)
    slopes = rng.random(p.heads).astype(np.float32)
    bias = rng.standard_normal((b, p.heads, p.queries, p.keys)).astype(dtype)
    drawn = np.zeros(bias.shape, np.uint8)
    added = slopes if spec.bias == "alibi" else bias
    pointers = [array.ctypes.data for array in (q, k, v, o, added, lse, drawn)]
    mask = 0 if p.window == FULL else 2 if p.window.bottom_right else 1
    square = (p.keys, p.queries * p.keys, p.heads * p.queries * p.keys)
    integers = (
        *(p.queries, p.keys, spec.hdim_q, spec.hdim_v, p.heads, p.heads // p.kv_heads),
        *(stride for array in (q, k, v, o) for stride in _strides(array)),
        *(*square, *square),
        *(p.queries, p.heads * p.queries, 0, p.window.left, p.window.right, mask, 0),
    )
    scale = 1 / math.sqrt(spec.hdim_q)
    arguments = struct.pack(
        f"<10Q2Q{len(integers)}i5f", *pointers, 0, 0, 0, SEED, OFFSET, *integers, scale, 1.0, 1.0, p.cap, p.keep
    )
    wave, tile = spec.wave, spec.tile
    lanes = archs.load(made.kernel.arch).wave_size * wave.m0 * wave.n0 * wave.k0
    Simulator().launch(
        made.image,
        made.function,
        grid=(p.heads, math.ceil(p.queries / tile.m0), b),
        block=(lanes, 1, 1),
        arguments=arguments,
        buffers=[
            Buffer(array.ctypes.data, array.nbytes, writable=array is o or array is lse or array is drawn, name=name)
            for name, array in (("Q", q), ("K", k), ("V", v), ("O", o), ("bias", added), ("LSE", lse), ("R", drawn))
        ],
    )
    worst = [0.0, 0.0]
    for request in range(b):
        features = Features(
            soft_cap=p.cap,
            bias=bias[request] if spec.bias == "elementwise" else None,
            slopes=slopes if spec.bias == "alibi" else None,
            window=p.window,
            kept=drawn[request] <= int(p.keep * 255) if spec.dropout else None,
            keep=p.keep,
        )
        wanted = forward(*(array[request].transpose(1, 0, 2) for array in (q, k, v)), features)
        found = o[request].transpose(1, 0, 2).astype(np.float64)
        worst[0] = max(worst[0], _worst(found, wanted.o) / float(np.abs(wanted.o).max()))
        if spec.lse:
            worst[1] = max(worst[1], _worst(lse[request].astype(np.float64), wanted.lse))
    if spec.dropout:
        np.testing.assert_array_equal(drawn, random_bytes(drawn.shape, SEED, OFFSET))
    return Errors(*worst)


def _worst(found: Array, wanted: Array) -> float:
    finite = np.isfinite(wanted)
    if np.isnan(found).any() or not (found[~finite] == wanted[~finite]).all():
        return math.inf
    return float(np.abs(found[finite] - wanted[finite]).max(initial=0.0))


def _strides(array: Array) -> tuple[int, int, int]:
    """Of rows, heads and requests, in elements."""
    request, row, head, _ = (stride // array.itemsize for stride in array.strides)
    return row, head, request
