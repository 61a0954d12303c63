"""libdispatcher_fmha_lib.so through ctypes, on naive kernels: every member of its struct reaches the dispatcher."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention.compat.client import APPEND_KV, BACKWARD, FORWARD, Args, Client, args
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window
from attention.pages import paged, rotated
from attention.philox import random_bytes
from attention.reference import Features, backward, forward
from attention.runtime.cases import starts
from kernelwright.dispatch.testdata import mocks

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def library(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("KERNELWRIGHT_FMHA_KERNELS", str(mocks.attention_library()))
    library = Client(built)
    assert library.initialize(None) == 0, library.last_error()
    yield library
    library.cleanup()


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def poisoned(*shape: int) -> Array:
    return np.full(shape, np.nan, np.float32)


def run(library: Any, made: Args) -> None:
    assert library.run(made, None) == 0, library.last_error()


SIZES = {"batch": 2, "nhead_q": 4, "nhead_k": 2, "seqlen_q": 5, "seqlen_k": 70, "hdim_q": 16, "hdim_v": 8}


@pytest.mark.parametrize("splits", [0, 3])
@pytest.mark.parametrize("i_perm", [0, 1])
def test_forward_with_every_feature(library: Any, i_perm: int, splits: int) -> None:
    shapes = [(2, 4, 5, 16), (2, 2, 70, 16), (2, 2, 70, 8)]
    q, k, v = (drawn(*shape, seed=at) for at, shape in enumerate(shapes))
    bias, sinks, lengths = drawn(2, 4, 5, 70), drawn(4), np.array([70, 33], np.int32)
    o, lse = poisoned(2, 4, 5, 8), poisoned(2, 4, 5)
    operands = {"q": q, "k": k, "v": v, "o": o}
    if not i_perm:
        operands = {name: np.ascontiguousarray(one.transpose(0, 2, 1, 3)) for name, one in operands.items()}
    dropout = {} if splits else {"p_drop": 0.25, "drop_seed": 2**63 + 5, "drop_offset": 7}
    made = args(
        **SIZES, **operands, i_perm=i_perm, lse=lse, bias=bias, bias_type=1, sinks=sinks, seqlen_k_ptr=lengths,
        mask_type=2, window_size_left=20, window_size_right=1, scale=0.4, num_splits=splits, **dropout,
    )  # fmt: skip
    made.window_size_right = 1
    run(library, made)
    out = operands["o"] if i_perm else operands["o"].transpose(0, 2, 1, 3)
    for b, keys in enumerate(lengths):
        kept = None
        if not splits:
            kept = random_bytes((b + 1, 4, 5, keys), 2**63 + 5, 7)[b] <= int(0.75 * 255)
        features = Features(
            scale=float(np.float32(0.4)), bias=bias[b, :, :, :keys], sinks=sinks, window=Window(20, 1, True), kept=kept,
            keep=1.0 if splits else 0.75,
        )  # fmt: skip
        wanted = forward(q[b], k[b, :, :keys], v[b, :, :keys], features)
        np.testing.assert_allclose(out[b], wanted.o, atol=1e-5)
        np.testing.assert_allclose(lse[b], wanted.lse, atol=1e-5)


def test_groups_slopes_and_caps(library: Any) -> None:
    queries, keys = (3, 5), (9, 2)
    q, k, v, o = drawn(8, 4, 16), drawn(11, 2, 16, seed=1), drawn(11, 2, 16, seed=2), poisoned(8, 4, 16)
    slopes = np.abs(drawn(4))
    first = starts(queries), starts(keys)
    common = {**SIZES, "hdim_v": 16, "seqlen_k": 9, "q": q, "k": k, "v": v, "o": o, "is_group_mode": 1}
    common |= {"seqstart_q": first[0], "seqstart_k": first[1]}
    for more, options in (
        ({"bias_type": 2, "bias": slopes, "mask_type": 1}, {"slopes": slopes, "window": TOP_LEFT}),
        ({"logits_soft_cap": 2.0, "mask_type": 2}, {"soft_cap": 2.0, "window": BOTTOM_RIGHT}),
    ):
        run(library, args(**{**common, **more}))
        for b in range(2):
            rows = slice(first[0][b], first[0][b + 1]), slice(first[1][b], first[1][b + 1])
            parts = (q[rows[0]], k[rows[1]], v[rows[1]])
            wanted = forward(*(each.transpose(1, 0, 2) for each in parts), Features(**options))  # type: ignore[arg-type]
            np.testing.assert_allclose(o[rows[0]].transpose(1, 0, 2), wanted.o, atol=1e-5)


@pytest.mark.parametrize("width", [5, 0])
def test_pages_of_both_tables(library: Any, width: int) -> None:
    rng = np.random.default_rng(0)
    requests = [drawn(length, 2, 16, seed=length) for length in (70, 33)]
    k = paged(requests, 16, rng)
    q, o = drawn(2, 5, 4, 16), poisoned(2, 5, 4, 16)
    given = {**SIZES, "hdim_v": 16, "q": q, "k": k.cache, "v": k.cache.copy(), "o": o}
    given |= {"page_block_size": 16, "page_count": len(k.cache), "page_table_width": width}
    if width:
        given |= {"page_table": k.block_table, "seqlen_k_ptr": np.array(k.lengths, np.int32)}
    else:
        given |= {"page_table": k.indices, "page_indptr": k.indptr, "last_page_lengths": k.last_page_lengths}
    run(library, args(**given))
    for b, rows in enumerate(requests):
        wanted = forward(*(each.transpose(1, 0, 2) for each in (q[b], rows, rows)))
        np.testing.assert_allclose(o[b].transpose(1, 0, 2), wanted.o, atol=1e-5)


def test_backward(library: Any) -> None:
    q, k, v, do = (drawn(2, 4, 5, 8), drawn(2, 2, 7, 8, seed=1), drawn(2, 2, 7, 8, seed=2), drawn(2, 4, 5, 8, seed=3))
    bias = drawn(2, 4, 5, 7)
    done = [forward(q[b], k[b], v[b], Features(bias=bias[b], window=TOP_LEFT)) for b in range(2)]
    o, lse = (np.stack([getattr(one, name) for one in done]).astype(np.float32) for name in ("o", "lse"))
    grad = {
        "dq": poisoned(*q.shape),
        "dk": poisoned(*k.shape),
        "dv": poisoned(*v.shape),
        "dbias": poisoned(*bias.shape),
    }
    made = args(
        operation=BACKWARD, i_perm=1, q=q, k=k, v=v, o=o, lse=lse, d_o=do, bias=bias, bias_type=1, mask_type=1,
        is_deterministic=1, **grad, **{**SIZES, "seqlen_k": 7, "hdim_q": 8},
    )  # fmt: skip
    run(library, made)
    for b in range(2):
        wanted = backward(q[b], k[b], v[b], do[b], Features(bias=bias[b], window=TOP_LEFT))
        for name, gradient in grad.items():
            np.testing.assert_allclose(gradient[b], getattr(wanted, name), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("rope", [1, 2])
def test_append_returns_the_caches(library: Any, rope: int) -> None:
    k, v, q = drawn(2, 3, 2, 16, seed=1), drawn(2, 3, 2, 16, seed=2), drawn(2, 1, 4, 16)
    k_cache, v_cache, q_out = (
        np.zeros((2, 10, 2, 16), np.float32),
        np.zeros((2, 10, 2, 16), np.float32),
        poisoned(*q.shape),
    )
    angles, held = drawn(20, 4), np.array([6, 0], np.int32)
    cos, sin = np.cos(angles), np.sin(angles)
    made = args(
        **{**SIZES, "seqlen_q": 1, "seqlen_k": 3, "hdim_v": 16}, operation=APPEND_KV, q=q, q_out=q_out, k=k, v=v,
        k_cache=k_cache, v_cache=v_cache, seqlen_k_ptr=held, cache_capacity=10, rope_type=rope, rotary_dim=8,
        rotary_places=20, cos=cos, sin=sin,
    )  # fmt: skip
    time = ctypes.c_float(-1)
    assert library.run(made, time) == 0 and time.value > 0
    for b in range(2):
        wanted = rotated(k[b], cos, sin, int(held[b]), rope == 1)
        np.testing.assert_allclose(k_cache[b, held[b] : held[b] + 3], wanted, atol=1e-6)
        np.testing.assert_array_equal(v_cache[b, held[b] : held[b] + 3], v[b])
        np.testing.assert_allclose(q_out[b], rotated(q[b], cos, sin, int(held[b]), rope == 1), atol=1e-6)
    made.q_out = made.q
    assert library.run(made, None) == -1 and b"q_out is q" in library.last_error()


def test_names_counts_and_selection(library: Any) -> None:
    assert library.version() == b"1.0.0" and library.kernel_count() == len(mocks.ATTENTION)
    text = ctypes.create_string_buffer(256)
    names = set()
    for index in range(library.kernel_count()):
        assert library.get_kernel_name(index, text, 256) == 0
        names.add(text.value.decode())
    assert names == {*mocks.ATTENTION.values()} and library.get_kernel_name(99, text, 256) == -1
    made = args(**SIZES, num_splits=2)
    assert library.select_kernel(made, text, 256) == 0 and text.value == b"fmha_fwd_splitkv"
    assert library.is_supported(made) == 1
    made.hdim_q = 2000
    assert library.is_supported(made) == 0 and b"hdim_q is 2000" in library.last_error()
    assert library.run(made, None) == -2


def test_the_struct_of_version_1_is_taken(library: Any) -> None:
    q, o = drawn(1, 1, 1, 16), poisoned(1, 1, 1, 16)
    made = args(**{**dict.fromkeys(SIZES, 1), "hdim_q": 16, "hdim_v": 16}, q=q, k=q, v=q, o=o)
    made.struct_size, made.version = Args.descale_q.offset, 1
    made.descale_q = 8  # of no such member
    run(library, made)
    np.testing.assert_allclose(o, q, atol=1e-6)


def test_wrong_arguments_are_minus_one_with_a_sentence(library: Any) -> None:
    q = drawn(1)
    for field, value, words in (
        ("struct_size", 8, b"struct_size = 8, version = 2; allowed: 360, 2, or 328, 1"), ("version", 3, b"version = 3"),
        ("version", 1, b"struct_size = 360, version = 1"), ("operation", 3, b"operation = 3"),
        ("data_type", b"half", b"data_type = half; allowed: fp32, fp16, bf16, fp8, fp8fp16, fp8bf16, fp8fp32"),
        ("batch", -1, b"batch = -1; allowed: 0 or more"), ("is_group_mode", 1, b"seqstart_q is null"),
        ("mask_type", 7, b"mask_type = 7; allowed: 0 to 2"), ("num_splits", -3, b"num_splits = -3; allowed: 0 or more"),
        ("nhead_q", 3, b"heads_q = 3; allowed: a multiple of heads_kv = 2"), ("nhead_k", 0, b"heads_kv = 0"),
        ("p_drop", 1.5, b"dropout_p"), ("page_block_size", -1, b"page_block_size = -1"),
        ("seqlen_q", 2**31 - 1, b"null"),
    ):  # fmt: skip
        made = args(**SIZES)
        setattr(made, field, value)
        assert library.run(made, None) == -1 and words in library.last_error(), (field, library.last_error())
    assert library.run(None, None) == -1 and b"args is null" in library.last_error()
    assert library.run(args(**SIZES, q=q), None) == -1 and b"k is null" in library.last_error()
    huge = args(**{name: 2**31 - 1 for name in SIZES})
    huge.nhead_k = huge.nhead_q
    assert library.run(huge, None) == -1 and b"spans too much memory" in library.last_error()


def test_results_share_memory_with_nothing(library: Any) -> None:
    memory = np.zeros(1 << 16, np.float32)
    sizes = {**dict.fromkeys(SIZES, 1), "seqlen_q": 8, "seqlen_k": 8, "hdim_q": 16, "hdim_v": 16}  # 128 elements each
    apart = {"q": memory, "k": memory[128:], "v": memory[256:], "o": memory[384:], "lse": memory[512:]}
    run(library, args(**sizes, **apart, operation=FORWARD))
    for changed, words in (
        ({"o": memory}, b"attention: o shares memory with q"), ({"o": memory[127:]}, b"o shares memory with "),
        ({"o": memory[383:]}, b"o shares memory with v"), ({"lse": memory[511:]}, b"shares memory with"),
    ):  # fmt: skip
        assert library.run(args(**sizes, **{**apart, **changed}, operation=FORWARD), None) == -1
        assert words in library.last_error(), library.last_error()


def test_it_starts_with_initialize(built: Path, tmp_path: Path) -> None:
    library = Client(built)
    made = args(**SIZES)
    assert library.run(made, None) == -1 and b"call fmha_dispatcher_initialize() first" in library.last_error()
    assert library.kernel_count() == 0
    gemm = mocks.write_library(tmp_path / "gemm")
    assert library.initialize_from(bytes(gemm), None) == -1 and b"no attention kernels" in library.last_error()
    kernels = bytes(mocks.attention_library())
    assert library.initialize_from(kernels, b"gfx950") == -1 and b"arch = gfx950; allowed: x86" in library.last_error()
    assert library.initialize_from(kernels, b"x86_64_v3") == 0 and library.kernel_count() > 0
    library.cleanup()
    assert library.kernel_count() == 0


def test_the_default_scale_is_that_of_the_head_dimension(library: Any) -> None:
    q, k, o, lse = drawn(1, 1, 1, 16), drawn(1, 1, 1, 16, seed=1), poisoned(1, 1, 1, 16), poisoned(1, 1, 1)
    sizes = {**dict.fromkeys(SIZES, 1), "hdim_q": 16, "hdim_v": 16}
    run(library, args(**sizes, q=q, k=k, v=k, o=o, lse=lse, operation=FORWARD))
    assert lse[0, 0, 0] == pytest.approx(float((q * k).sum()) / math.sqrt(16), rel=1e-5)
