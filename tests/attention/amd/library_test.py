"""AMD attention kernels run in the simulator, through the dispatcher and the library's launcher, against float64."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from attention.amd.built import library
from attention.amd.memory import CHECKS
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window
from attention.pages import append, paged, rotated
from attention.reference import Features, forward
from attention.runtime.bench import check_backward, check_forward
from attention.runtime.cases import Case, starts
from kernelwright.dispatch import ArchMismatchError, AttentionProblem, Device, Dispatcher, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.simulator.run import device
from kernelwright.tile_engine.measuring.measure import Measurement
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable

pytestmark = pytest.mark.thorough(instead="tests/attention/amd/neighbours_test.py")

PLAIN = Case((40, 40), (70, 70), hdim=64, hdim_v=64, dtype="fp16")


@cache
def dispatcher(name: str = "core", arch: str = "gfx942") -> Dispatcher:
    mocks.native_library()
    return Dispatcher([library(arch, name)], f"sim:{arch}")


@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        replace(PLAIN, queries=(130,), keys=(33,), window=TOP_LEFT, layout="bhsd"),
        replace(PLAIN, queries=(9,), keys=(3,), window=BOTTOM_RIGHT),  # rows that see nothing
        replace(PLAIN, hdim=40, hdim_v=24, window=Window(20, 5, True)),
        replace(PLAIN, queries=(40,), keys=(70,), window=Window(2**32, 2**33, True)),  # wider than 31 bits: all keys
    ],
)
def test_forward(case: Case) -> None:
    check_forward(dispatcher(), case)
    assert any(report.counts["matrix"] > 0 for report in device.last_reports())


def test_the_tile_engine_counts_the_instructions_of_right_kernels() -> None:
    dispatcher()  # the native library
    built, attention = library("gfx942", "core"), measurable("attention")
    record = {"seqlen_q": 40, "seqlen_k": 70, "nhead_q": 2, "hdim_q": 64, "mask": "bottom_right", "lse": 1}
    measurement = Measurement(built, Device("sim:gfx942"), attention, Settings())
    kernels = {kernel.identity: kernel for kernel in built.kernels}
    reports = list(measurement.run(attention.read(record), list(kernels), lambda kernel: None))
    right = {kernels[report["kernel"]].spec["family"]: report for report in reports if report["status"] == "ok"}
    assert "fwd" in right and {report["status"] for report in reports} == {"ok", "refused"}
    assert right["fwd"]["instructions"]["matrix"] > 0 and right["fwd"]["latency_ms"] is None


@pytest.mark.parametrize("splits", [2, 5, 9])
def test_splits_of_ragged_caches(splits: int) -> None:
    case = replace(PLAIN, queries=(1, 1, 1), keys=(300, 1, 130), heads=8, splits=splits)
    with device.configure(checks=CHECKS):
        check_forward(dispatcher(), case)


@pytest.mark.parametrize(
    "case",
    [
        replace(PLAIN, window=BOTTOM_RIGHT),
        replace(PLAIN, queries=(50,), keys=(30,), heads=2, kv_heads=2, window=BOTTOM_RIGHT, layout="bhsd"),
        replace(PLAIN, queries=(40,), keys=(70,), window=Window(2**32, 0)),
        replace(PLAIN, hdim=40, hdim_v=40),
    ],
)
def test_backward(case: Case) -> None:
    with device.configure(checks=CHECKS):
        check_backward(dispatcher(), case)


def test_append_to_pages() -> None:
    rng, held, new = np.random.default_rng(1), (70, 0), 5
    k, v = (rng.standard_normal((2, new, 2, 64)).astype(np.float16) for _ in "kv")
    q = rng.standard_normal((2, new, 4, 64)).astype(np.float16)
    angles = rng.random((80, 16)) * 6
    cos, sin = np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)
    room = paged([np.zeros((n + new, 2, 64), np.float16) for n in held], 16, rng)
    filled = replace(room, lengths=held)
    turned = [rotated(k[b], cos, sin, n, False).astype(np.float16) for b, n in enumerate(held)]
    k_cache, v_cache = room.cache.copy(), room.cache.copy()
    lengths = np.array(held, np.int32)
    q_rotated = dispatcher().append_kv(
        k, v, k_cache, v_cache, lengths, q=q, cos=cos, sin=sin, page_table=room.block_table, interleaved=False
    )
    np.testing.assert_allclose(k_cache, append(room.cache, filled, turned), atol=2e-3)
    np.testing.assert_array_equal(v_cache, append(room.cache, filled, list(v)))
    for b, n in enumerate(held):
        np.testing.assert_allclose(q_rotated[b], rotated(q[b], cos, sin, n, False), atol=4e-3)


EVERY = pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: 30 processor seconds")


@EVERY
@pytest.mark.parametrize(
    "case",
    [
        replace(PLAIN, group=True, queries=(50, 1, 0, 30), keys=(70, 33, 5, 0)),
        replace(PLAIN, group=True, queries=(50, 130), keys=(70, 33), heads=8, kv_heads=1, window=BOTTOM_RIGHT),
    ],
)
def test_ragged_requests(case: Case) -> None:
    with device.configure(checks=CHECKS):
        check_forward(dispatcher("ragged"), case)


@EVERY
@pytest.mark.parametrize("kind", ["block", "list"])
def test_prefill_out_of_pages(kind: str) -> None:
    rng, lengths, counts = np.random.default_rng(3), (140, 5, 0, 64), (20, 5, 3, 1)
    rows = [rng.standard_normal((n, 2, 128)).astype(np.float16) for n in lengths]
    k = paged(rows, 16, rng)
    q = rng.standard_normal((sum(counts), 4, 128)).astype(np.float16)
    table = {"page_table": k.block_table, "seqlens_k": np.array(lengths, np.int32)}
    if kind == "list":
        table = {"page_table": k.indices, "page_indptr": k.indptr, "last_page_lengths": k.last_page_lengths}
    first = starts(counts)
    with device.configure(checks=CHECKS):
        out, lse = dispatcher("ragged").prefill(
            q, k.cache, k.cache.copy(), first, max(counts), lse=True, max_seqlen_k=140, **table
        )
    for b, one in enumerate(rows):
        own = slice(int(first[b]), int(first[b + 1]))
        wanted = forward(*(x.transpose(1, 0, 2) for x in (q[own], one, one)), Features(window=BOTTOM_RIGHT))
        np.testing.assert_allclose(out[own].transpose(1, 0, 2), wanted.o, atol=4e-3)
        np.testing.assert_allclose(lse[:, own], wanted.lse, atol=1e-4)


@EVERY
@pytest.mark.parametrize(("queries", "page", "heads_first"), [(1, 16, False), (1, 16, True), (5, 64, False)])
def test_requests_of_one_length_out_of_small_pages(queries: int, page: int, heads_first: bool) -> None:
    """Pages are smaller than a tile of keys: batch_prefill takes such batches, whose queries lie anyhow if single."""
    rng, lengths = np.random.default_rng(4), (140, 5, 64)
    rows = [rng.standard_normal((n, 2, 96)).astype(np.float16) for n in lengths]
    k = paged(rows, page, rng)
    shape = (3, 4, queries, 96) if heads_first else (3, queries, 4, 96)
    stored = rng.standard_normal(shape).astype(np.float16)
    q = stored.transpose(0, 2, 1, 3) if heads_first else stored
    with device.configure(checks=CHECKS):
        out = dispatcher("ragged").decode(
            q, k.cache, k.cache.copy(), np.array(lengths, np.int32), page_table=k.block_table, max_seqlen_k=140
        )
    for b, one in enumerate(rows):
        wanted = forward(*(x.transpose(1, 0, 2) for x in (q[b], one, one)), Features(window=BOTTOM_RIGHT))
        np.testing.assert_allclose(out[b].transpose(1, 0, 2), wanted.o, atol=4e-3)


@EVERY
@pytest.mark.parametrize(("hdim", "page"), [(128, 16), (256, 64)])
def test_capped_scores_of_caches_in_small_pages(hdim: int, page: int) -> None:
    rng, lengths = np.random.default_rng(5), (140, 5, 64)
    rows = [(4 * rng.standard_normal((n, 2, hdim))).astype(ml_dtypes.bfloat16) for n in lengths]
    k = paged(rows, page, rng)
    q = rng.standard_normal((3, 1, 4, hdim)).astype(ml_dtypes.bfloat16)
    with device.configure(checks=CHECKS):
        out = dispatcher("capped").decode(
            q, k.cache, k.cache.copy(), np.array(lengths, np.int32), page_table=k.block_table, max_seqlen_k=140,
            soft_cap=2.0,
        )  # fmt: skip
    for b, one in enumerate(rows):
        features = Features(window=BOTTOM_RIGHT, soft_cap=2.0)
        wide = (x.astype(np.float64).transpose(1, 0, 2) for x in (q[b], one, one))
        wanted = forward(*wide, features)
        np.testing.assert_allclose(out[b].astype(np.float64).transpose(1, 0, 2), wanted.o, atol=0.06, rtol=2**-7)


FACTORS = tuple(np.array([value], np.float32) for value in (0.031, 0.027, 0.023))


def narrow(fnuz: bool, name: str, *shape: int) -> tuple[Any, Any]:
    """Stored numbers of q, k or v, and what they stand for: heads before rows."""
    at = "qkv".index(name)
    kind = ml_dtypes.float8_e4m3fnuz if fnuz else ml_dtypes.float8_e4m3fn
    stored = (np.random.default_rng(at).standard_normal(shape) / FACTORS[at]).astype(kind)
    return stored, np.swapaxes(stored.astype(np.float64) * FACTORS[at], -2, -3)


def off(out: Any, o: Any, p: Any, v: Any) -> float:
    """The largest error relative to the sum of all terms' absolute values (heads before rows), 2⁻⁴ for each."""
    terms = p @ np.repeat(np.abs(v), len(p) // len(v), axis=0)
    return float((np.abs(out.astype(np.float64) - o) / (terms + 1e-2)).max())


def test_operands_of_8_bits() -> None:
    (q, q_wide), (k, k_wide), (v, v_wide) = (
        narrow(True, name, 2, rows, heads, 64) for name, rows, heads in (("q", 40, 4), ("k", 70, 2), ("v", 70, 2))
    )
    with device.configure(checks=CHECKS):
        out, lse = dispatcher("narrow").attention(q, k, v, mask="bottom_right", lse=True, descale=FACTORS, dtype="bf16")
    for b in range(2):
        wanted = forward(q_wide[b], k_wide[b], v_wide[b], Features(window=BOTTOM_RIGHT))
        np.testing.assert_allclose(lse[b], wanted.lse, atol=1e-4)
        assert off(out[b].transpose(1, 0, 2), wanted.o, wanted.p, v_wide[b]) < 2**-4
    ocp = q.astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    with pytest.raises(ArchMismatchError, match=r"q is in the OCP format of fp8; allowed on gfx942: FNUZ"):
        dispatcher("narrow").attention(ocp, ocp, ocp, dtype="bf16")
    with pytest.raises(NoKernelError, match=r"qscale"):
        blocks = tuple(np.ones((2, heads, 1), np.float32) for heads in (4, 2, 2))
        told = {"qscale": "block_scale", "scale_blocks": (128, 128), "dtype": "bf16"}
        dispatcher("narrow").attention(q, k, v, descale=blocks, **told)


@EVERY
@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1201"])
def test_caches_and_results_of_8_bits(arch: str) -> None:
    made, fnuz = dispatcher("narrow_caches", arch), arch == "gfx942"
    (q, q_wide), (k, k_wide), (v, v_wide) = (
        narrow(fnuz, name, 2, rows, heads, 64) for name, rows, heads in (("q", 3, 4), ("k", 300, 2), ("v", 300, 2))
    )
    wanted = [forward(q_wide[b], k_wide[b], v_wide[b], Features(window=BOTTOM_RIGHT)) for b in range(2)]
    told: dict[str, Any] = {"descale": FACTORS, "mask": "bottom_right", "lse": True}
    with device.configure(checks=CHECKS):
        outputs = [
            made.attention(q, k, v, dtype="bf16", num_splits=3, **told),
            made.attention(q, k, v, dtype="fp8", scale_o=np.array([20], np.float32), **told),
        ]
        k_pages, v_pages = (paged(list(one), 64, np.random.default_rng(1)) for one in (k, v))
        flat, lengths = q.reshape(6, 4, 64), np.full(2, 300, np.int32)
        out, lse = made.prefill(
            flat, k_pages.cache, v_pages.cache, starts((3, 3)), 3, lengths, page_table=k_pages.block_table,
            max_seqlen_k=300, dtype="bf16", **told,
        )  # fmt: skip
        outputs.append((out.reshape(q.shape), lse.reshape(4, 2, 3).transpose(1, 0, 2)))
    for b in range(2):
        for (out, lse), factor, least in zip(outputs, (1, 20, 1), (2**-4, 2**-3, 2**-4), strict=True):
            np.testing.assert_allclose(lse[b], wanted[b].lse, atol=1e-4)
            o = out[b].astype(np.float64).transpose(1, 0, 2) / factor
            assert off(o, wanted[b].o, wanted[b].p, v_wide[b]) < least
    caches = [np.zeros((2, 16, 2, 64), k.dtype) for _ in "kv"]
    new, table = k[:1, :5], np.array([[1]], np.int32)
    made.append_kv(new, new, *caches, np.array([7], np.int32), page_table=table)
    for one in caches:
        assert (one[1, 7:12].view(np.uint8) == new[0].view(np.uint8)).all() and not one.view(np.uint8)[0].any()


@EVERY
def test_pages_of_one_tile() -> None:
    rng, lengths = np.random.default_rng(3), (140, 300)
    rows = [rng.standard_normal((n, 2, 128)).astype(np.float16) for n in lengths]
    k = paged(rows, 128, rng)
    q = rng.standard_normal((2, 9, 4, 128)).astype(np.float16)
    with device.configure(checks=CHECKS):
        out = dispatcher("ragged").decode(
            q,
            k.cache,
            k.cache.copy(),
            max_seqlen_k=300,
            page_table=k.block_table,
            seqlens_k=np.array(lengths, np.int32),
        )
    for b, one in enumerate(rows):
        wanted = forward(*(x.transpose(1, 0, 2) for x in (q[b], one, one)), Features(window=BOTTOM_RIGHT))
        np.testing.assert_allclose(out[b].transpose(1, 0, 2), wanted.o, atol=4e-3)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"seqlen_k": 2**25}, "byte offsets do not fit into 31 bits"),
        ({"sink": True}, "the problem has sinks, this kernel has not"),
        ({"batch": 70000}, "more than the 65535 that a grid can have"),
    ],
)
def test_what_no_kernel_serves_is_said(fields: dict[str, int], why: str) -> None:
    plain: dict[str, Any] = {
        "batch": 1,
        "heads_q": 2,
        "heads_kv": 1,
        "seqlen_q": 4,
        "seqlen_k": 4,
        "hdim_q": 64,
        "dtype": "fp16",
    }
    with pytest.raises(NoKernelError, match=why):
        dispatcher().plan(AttentionProblem("forward", **{**plain, **fields}))
