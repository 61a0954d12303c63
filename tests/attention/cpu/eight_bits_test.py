"""Operands of 8 bits on CPUs against float64: factors of every kind, masks, ragged requests, caches, result types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from attention.cpu.conftest import EIGHT_BITS, made
from attention.masks import BOTTOM_RIGHT, FULL, TOP_LEFT, Window
from attention.pages import paged
from attention.philox import random_bytes
from attention.reference import Features, forward
from attention.runtime.caches import in_pages_of, table
from attention.runtime.cases import starts
from kernelwright.dispatch import ArchMismatchError, Dispatcher, KernelLibrary, NoKernelError

Array = np.ndarray[Any, np.dtype[Any]]
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)
DESCALE = tuple(np.array([value], np.float32) for value in (0.031, 0.017, 0.0123))
TOLERANCE = {"fp32": 1e-5, "fp16": 2e-3, "bf16": 1.2e-2}


@pytest.fixture(scope="module", params=EIGHT_BITS)
def some(request: pytest.FixtureRequest, libraries: dict[str, KernelLibrary]) -> Iterator[Dispatcher]:
    yield from made(libraries, request.param)


@pytest.fixture(scope="module")
def dispatcher(libraries: dict[str, KernelLibrary]) -> Iterator[Dispatcher]:
    """With kernels of every family."""
    yield from made(libraries, "x86_64_v4")


def draw(rng: np.random.Generator, *shape: int, factor: Any = 1.0) -> Array:
    """Stored numbers, normally distributed where they are multiplied by their factor."""
    return (rng.standard_normal(shape) / factor).astype(FP8)


def wide(stored: Array, factor: Any) -> Array:
    return stored.astype(np.float64) * np.asarray(factor, np.float64)


def holds(out: Array, wanted: Array, dtype: str) -> None:
    np.testing.assert_allclose(out.astype(np.float64), wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@dataclass(frozen=True)
class Case:
    queries: int
    keys: int
    heads: int = 4
    kv_heads: int = 2
    d: int = 64
    dv: int = 64
    window: Window = FULL
    soft_cap: float = 0.0
    sinks: bool = False
    dropout: float = 0.0

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = {"soft_cap": self.soft_cap, "dropout_p": self.dropout, "seed": 3, "lse": True}
        if self.window != FULL:
            told["mask"] = "bottom_right" if self.window.bottom_right else "top_left"
            told["window"] = self.window.left, self.window.right
        return told


CASES = (
    Case(150, 200, window=BOTTOM_RIGHT),
    Case(97, 513, 2, 1, 128, 40, window=Window(20, 5), sinks=True),
    Case(3, 333, 8, 1, 256, 256),  # few rows
    Case(70, 90, dropout=0.3, window=TOP_LEFT),
    Case(140, 10, window=BOTTOM_RIGHT),  # most queries see nothing
    Case(33, 70, soft_cap=2.0, d=24, dv=8),
)


@pytest.mark.parametrize("case", CASES)
def test_forward(some: Dispatcher, case: Case) -> None:
    rng, c, batch = np.random.default_rng(1), case, 2
    q = draw(rng, batch, c.queries, c.heads, c.d, factor=DESCALE[0])
    k = draw(rng, batch, c.keys, c.kv_heads, c.d, factor=DESCALE[1])
    v = draw(rng, batch, c.keys, c.kv_heads, c.dv, factor=DESCALE[2])
    sinks = rng.standard_normal(c.heads).astype(np.float32) if c.sinks else None
    out, lse = some.attention(q, k, v, descale=DESCALE, dtype="fp32", sinks=sinks, **c.told())
    assert out.dtype == np.float32
    kept = random_bytes((batch, c.heads, c.queries, c.keys), 3, 0) <= int((1 - c.dropout) * 255)
    for b in range(batch):
        features = Features(
            soft_cap=c.soft_cap, window=c.window, sinks=sinks, kept=kept[b] if c.dropout else None, keep=1 - c.dropout
        )
        values = (wide(one[b], f).transpose(1, 0, 2) for one, f in zip((q, k, v), DESCALE, strict=True))
        wanted = forward(*values, features)
        holds(out[b].transpose(1, 0, 2), wanted.o, "fp32")
        np.testing.assert_allclose(lse[b], wanted.lse, atol=1e-4)


@pytest.mark.parametrize("queries", [5, 130])
def test_factors_of_blocks_of_rows(some: Dispatcher, queries: int) -> None:
    rng, keys, blocks = np.random.default_rng(2), 300, (32, 48)
    shapes = ((2, queries, 4, 64), (2, keys, 2, 64), (2, keys, 2, 64))
    stored, factors, values = [], [], []
    for shape, block in zip(shapes, (blocks[0], blocks[1], blocks[1]), strict=True):
        batch, rows, heads, _ = shape
        factor = (0.01 + rng.random((batch, heads, -(-rows // block)))).astype(np.float32)
        each = np.repeat(factor, block, axis=2)[:, :, :rows].transpose(0, 2, 1)[..., None]
        stored.append(draw(rng, *shape, factor=each))
        factors.append(factor)
        values.append(wide(stored[-1], each).transpose(0, 2, 1, 3))
    told: dict[str, Any] = {"descale": tuple(factors), "qscale": "block_scale", "scale_blocks": blocks}
    out = some.attention(*stored, **told, mask="bottom_right", dtype="fp32")
    for b in range(2):
        holds(out[b].transpose(1, 0, 2), forward(*(one[b] for one in values), Features(window=BOTTOM_RIGHT)).o, "fp32")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_ragged_requests_and_every_wide_result(dispatcher: Dispatcher, dtype: str) -> None:
    rng, queries, keys = np.random.default_rng(3), (130, 1, 20), (70, 300, 5)
    q, k, v = (
        draw(rng, sum(n), heads, 128, factor=f)
        for n, heads, f in zip((queries, keys, keys), (8, 2, 2), DESCALE, strict=True)
    )
    first = starts(queries), starts(keys)
    told = {"cu_seqlens_q": first[0], "cu_seqlens_k": first[1], "max_seqlen_q": 130, "max_seqlen_k": 300}
    out = dispatcher.attention(q, k, v, descale=DESCALE, dtype=dtype, mask="bottom_right", **told)
    for b in range(3):
        rows = [slice(one[b], one[b + 1]) for one in (first[0], first[1], first[1])]
        values = (wide(x[r], f).transpose(1, 0, 2) for x, r, f in zip((q, k, v), rows, DESCALE, strict=True))
        holds(out[rows[0]].transpose(1, 0, 2), forward(*values, Features(window=BOTTOM_RIGHT)).o, dtype)


LENGTHS = (370, 5, 0, 640, 33)


@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize("queries", [1, 20])
@pytest.mark.parametrize("by_page", [False, True])
def test_decode_out_of_pages(dispatcher: Dispatcher, kind: str, queries: int, by_page: bool) -> None:
    rng, size = np.random.default_rng(4), 16
    ks, vs = ([draw(rng, n, 2, 64, factor=0.02) for n in LENGTHS] for _ in "kv")
    k = paged(ks, size, rng)
    values = in_pages_of(k, vs)
    q = draw(rng, len(LENGTHS), queries, 8, 64, factor=DESCALE[0])
    of_page = [(0.01 + 0.02 * rng.random((len(k.cache), 2))).astype(np.float32) for _ in "kv"]
    for splits in (0, 1, 3):
        out, lse = dispatcher.decode(
            q, k.cache, values, lse=True, max_seqlen_k=640, num_splits=splits, dtype="bf16",
            descale=(DESCALE[0], *of_page) if by_page else DESCALE,
            qscale="kv_block_scale" if by_page else "per_tensor", **table(k, kind),
        )  # fmt: skip
        for b, count in enumerate(LENGTHS):
            own = k.indices[k.indptr[b] : k.indptr[b + 1]]
            factors = [np.repeat(f[own], size, axis=0)[:count, :, None] for f in of_page] if by_page else DESCALE[1:]
            rows = (wide(q[b], DESCALE[0]), wide(ks[b], factors[0]), wide(vs[b], factors[1]))
            window = BOTTOM_RIGHT if queries > 1 else FULL
            wanted = forward(*(one.transpose(1, 0, 2) for one in rows), Features(window=window))
            holds(out[b].transpose(1, 0, 2), wanted.o, "bf16")
            np.testing.assert_allclose(lse[b], wanted.lse, atol=1e-3)


def test_prefill_and_append(dispatcher: Dispatcher) -> None:
    rng, counts = np.random.default_rng(5), (150, 5, 3, 97, 1)
    ks, vs = ([draw(rng, n, 2, 64, factor=0.02) for n in LENGTHS] for _ in "kv")
    k, first = paged(ks, 16, rng), starts(counts)
    q = draw(rng, sum(counts), 8, 64, factor=DESCALE[0])
    told = {"max_seqlen_k": 640, "descale": DESCALE, "dtype": "bf16", **table(k, "list")}
    out = dispatcher.prefill(q, k.cache, in_pages_of(k, vs), first, max(counts), **told)
    for b in range(len(counts)):
        own = slice(first[b], first[b + 1])
        rows = [wide(one, f).transpose(1, 0, 2) for one, f in zip((q[own], ks[b], vs[b]), DESCALE, strict=True)]
        holds(out[own].transpose(1, 0, 2), forward(*rows, Features(window=BOTTOM_RIGHT)).o, "bf16")
    cache, new = np.zeros((2, 1, 9, 2, 64), FP8), draw(rng, 1, 3, 2, 64)
    assert dispatcher.append_kv(new, new, cache[0], cache[1], np.array([4], np.int32)) is None
    wanted = np.zeros_like(cache[0])
    wanted[:, 4:7] = new
    for one in cache:
        np.testing.assert_array_equal(one.view(np.uint8), wanted.view(np.uint8))


def test_every_8_bit_number_is_read(some: Dispatcher) -> None:
    """With one key O is V: 128 numbers at a time; NaN stays NaN."""
    for sign in (0, 0x80):
        numbers = (np.arange(128, dtype=np.uint8) | sign).view(FP8).reshape(1, 1, 1, 128)
        out = some.attention(np.zeros_like(numbers), np.zeros_like(numbers), numbers, dtype="fp32")
        np.testing.assert_array_equal(out, numbers.astype(np.float32))


def test_what_is_refused_is_said(dispatcher: Dispatcher) -> None:
    rng = np.random.default_rng(6)
    q = draw(rng, 1, 3, 2, 64)
    fnuz = q.astype(np.float32).astype(ml_dtypes.float8_e4m3fnuz)
    with pytest.raises(ArchMismatchError, match=r"q is in the FNUZ format of fp8; allowed on x86_64_v4: OCP"):
        dispatcher.attention(fnuz, fnuz, fnuz, dtype="fp32")
    with pytest.raises(NoKernelError, match=r"dtype_(o|q) is fp8, this kernel serves"):
        dispatcher.attention(q, q, q, dtype="fp8", scale_o=np.ones(1, np.float32))
    wide_q = q.astype(np.float32)
    with pytest.raises(NoKernelError, match=r"dtype_(kv is fp8|q is fp32), this kernel serves"):
        dispatcher.attention(wide_q, q, q, dtype="fp32")
    with pytest.raises(NoKernelError, match=r"qscale"):
        dispatcher.attention(*[wide_q] * 3, descale=DESCALE)
