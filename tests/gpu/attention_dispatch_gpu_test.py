"""Attention on a GPU as users call it: ``Dispatcher`` and ``kernelwright.torch`` choose kernels and splits."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("kernelwright.dispatch")
kernelwright_torch = pytest.importorskip("kernelwright.torch")

from places import DEVICE, on_new_stream, sleep, synchronize  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("KERNELWRIGHT_GPU_ATTENTION", ROOT / ".gpu/attention/libattention.so")).parent
pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(
        not (FOLDER / "manifest.json").exists() or not Path(os.environ.get("KERNELWRIGHT_LIBRARY", "/-")).exists(),
        reason=f"{FOLDER} has no library with a manifest, or KERNELWRIGHT_LIBRARY names no dispatcher",
    ),
]
HDIM, PAGE = 128, 64


@pytest.fixture(scope="module")
def dispatcher(gpu: None) -> Any:
    torch.manual_seed(0)
    return dispatch.Dispatcher([dispatch.KernelLibrary.load(FOLDER)], device=DEVICE)


@pytest.fixture
def in_use(dispatcher: Any) -> Iterator[None]:
    kernelwright_torch.use(dispatcher)
    yield
    kernelwright_torch.forget(DEVICE)


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, device=DEVICE).bfloat16()


def exact(q: Any, k: Any, v: Any, sees: Any = None, bias: Any = 0) -> tuple[Any, Any]:
    """O and LSE in float64 of Q (rows, heads, hdim) and K, V; ``sees`` (rows, keys) says which keys a query sees.

    ``bias`` (heads, rows, keys) is added to the scores.
    """
    group = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(group, 1), v.double().repeat_interleave(group, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[2]) + bias
    if sees is not None:
        scores = scores.masked_fill(~sees, -math.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v), scores.logsumexp(-1)


def causal(rows: int, keys: int, left: int = -1) -> Any:
    place = torch.arange(rows, device=DEVICE)[:, None] + keys - rows
    key = torch.arange(keys, device=DEVICE)[None]
    return (key <= place) & ((key >= place - left) if left >= 0 else True)


def near(actual: Any, wanted: Any) -> bool:
    synchronize()
    return bool((actual.double() - wanted).norm() <= 1e-2 * wanted.norm())


@pytest.mark.parametrize(("rows", "keys"), [(257, 257), (100, 611), (1, 5000)])
@pytest.mark.parametrize("mask", ["none", "causal", "window"])
def test_forward(dispatcher: Any, rows: int, keys: int, mask: str) -> None:
    q, k, v = drawn(2, rows, 8, HDIM), drawn(2, keys, 2, HDIM), drawn(2, keys, 2, HDIM)
    options: dict[str, Any] = {
        "none": {},
        "causal": {"mask": "bottom_right"},
        "window": {"mask": "bottom_right", "window": (70, 0)},
    }[mask]
    out, lse = dispatcher.attention(q, k, v, lse=True, **options)
    sees = None if mask == "none" else causal(rows, keys, 70 if mask == "window" else -1)
    for at in range(2):
        o, sums = exact(q[at], k[at], v[at], sees)
        assert near(out[at], o) and near(lse[at], sums)


@pytest.mark.parametrize("hdim", [64, 256])
@pytest.mark.parametrize("mask", ["none", "bottom_right"])
def test_head_dimensions(dispatcher: Any, hdim: int, mask: str) -> None:
    q, k, v = drawn(2, 300, 4, hdim), drawn(2, 411, 2, hdim), drawn(2, 411, 2, hdim)
    out = dispatcher.attention(q, k, v, mask=mask)
    sees = None if mask == "none" else causal(300, 411)
    assert all(near(out[at], exact(q[at], k[at], v[at], sees)[0]) for at in range(2))


@pytest.mark.parametrize("mask", ["none", "bottom_right"])
def test_biases(dispatcher: Any, mask: str) -> None:
    """Elementwise, the same for both requests, and as slopes of each request and head."""
    q, k, v = drawn(2, 200, 8, HDIM), drawn(2, 333, 2, HDIM), drawn(2, 333, 2, HDIM)
    sees = None if mask == "none" else causal(200, 333)
    added = drawn(1, 8, 200, 333)
    out = dispatcher.attention(q, k, v, bias=added, mask=mask)
    assert all(near(out[at], exact(q[at], k[at], v[at], sees, added[0].double())[0]) for at in range(2))
    slopes = torch.rand(2, 8, device=DEVICE) * 0.1
    distance = (torch.arange(200, device=DEVICE)[:, None] + 133 - torch.arange(333, device=DEVICE)).abs().double()
    out = dispatcher.attention(q, k, v, alibi_slopes=slopes, mask=mask)
    wanted = [exact(q[at], k[at], v[at], sees, -slopes[at].double()[:, None, None] * distance)[0] for at in range(2)]
    assert all(near(out[at], wanted[at]) for at in range(2))


def test_rows_are_turned_as_they_are_appended(dispatcher: Any) -> None:
    """K and Q with rotary embedding, V without, behind rows that stay; one request has no room for all of its rows."""
    before = torch.tensor([5, 0, 60], dtype=torch.int32, device=DEVICE)
    k_cache, v_cache = drawn(3, 64, 2, HDIM), drawn(3, 64, 2, HDIM)
    kept = k_cache.clone(), v_cache.clone()
    q, k, v = drawn(3, 7, 8, HDIM), drawn(3, 7, 2, HDIM), drawn(3, 7, 2, HDIM)
    angle = torch.rand(80, HDIM // 2, device=DEVICE) * 6
    cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
    turned = dispatcher.append_kv(k, v, k_cache, v_cache, before, q=q, cos=cos, sin=sin)

    def rotated(x: Any, start: int) -> Any:
        c, s = (t[start : start + len(x), None].double() for t in (cos, sin))
        low, high = x.double().chunk(2, -1)
        return torch.cat([low * c - high * s, low * s + high * c], -1)

    for at, start in enumerate(before.tolist()):
        room = min(7, 64 - start)
        here = slice(start, start + room)
        assert near(turned[at], rotated(q[at], start)) and near(k_cache[at, here], rotated(k[at], start)[:room])
        assert torch.equal(v_cache[at, here], v[at, :room])
        for cache, old in zip((k_cache, v_cache), kept, strict=True):
            assert torch.equal(cache[at, :start], old[at, :start]) and torch.equal(
                cache[at, 7 + start :], old[at, 7 + start :]
            )


def test_ragged_requests(dispatcher: Any) -> None:
    counts = [5, 300, 1, 128]
    starts = torch.tensor([0, 5, 305, 306, 434], dtype=torch.int32, device=DEVICE)
    q, k, v = drawn(434, 8, HDIM), drawn(434, 2, HDIM), drawn(434, 2, HDIM)
    ragged = {"cu_seqlens_q": starts, "cu_seqlens_k": starts, "max_seqlen_q": 300, "max_seqlen_k": 300}
    out = dispatcher.attention(q, k, v, mask="bottom_right", **ragged)
    for first, count in zip(starts.tolist(), counts, strict=False):
        part = slice(first, first + count)
        assert near(out[part], exact(q[part], k[part], v[part], causal(count, count))[0])


def test_keys_are_appended_to_pages_and_read(dispatcher: Any) -> None:
    """Three requests: new keys go to shuffled pages; decode and prefill read them where they are."""
    lengths = [130, 1, 700]
    pages = 16 * len(lengths)
    table = torch.randperm(pages, device=DEVICE).int().reshape(len(lengths), 16)
    k_cache, v_cache = drawn(pages, PAGE, 2, HDIM), drawn(pages, PAGE, 2, HDIM)
    before = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    new_k, new_v = drawn(3, 1, 2, HDIM), drawn(3, 1, 2, HDIM)
    dispatcher.append_kv(new_k, new_v, k_cache, v_cache, before, page_table=table)
    keys, values = (
        [cache[table[at].long()].reshape(-1, 2, HDIM)[: length + 1] for at, length in enumerate(lengths)]
        for cache in (k_cache, v_cache)
    )
    synchronize()
    assert all(torch.equal(keys[at][-1], new_k[at, 0]) and torch.equal(values[at][-1], new_v[at, 0]) for at in range(3))
    q = drawn(3, 1, 8, HDIM)
    out = dispatcher.decode(q, k_cache, v_cache, before + 1, page_table=table)
    assert all(near(out[at], exact(q[at], keys[at], values[at])[0]) for at in range(3))
    rows, starts = 65, torch.tensor([0, 65, 65, 130], dtype=torch.int32, device=DEVICE)
    q = drawn(130, 8, HDIM)
    out = dispatcher.prefill(q, k_cache, v_cache, starts, rows, before + 1, page_table=table, mask="bottom_right")
    for at, first in ((0, 0), (2, 65)):
        part = slice(first, first + rows)
        assert near(out[part], exact(q[part], keys[at], values[at], causal(rows, lengths[at] + 1))[0])


def test_one_long_sequence_is_split(dispatcher: Any) -> None:
    q, k, v = drawn(1, 1, 8, HDIM), drawn(1, 20011, 1, HDIM), drawn(1, 20011, 1, HDIM)
    problem = dispatch.AttentionProblem("forward", 1, 8, 1, 1, 20011, HDIM, dtype="bf16")
    assert "num_splits=1 " not in f"{dispatcher.plan(problem).choices} "
    assert near(dispatcher.attention(q, k, v)[0], exact(q[0], k[0], v[0])[0])


@pytest.mark.parametrize("mask", [None, "bottom_right"])
def test_gradients_of_torch_operators(dispatcher: Any, in_use: None, mask: str | None) -> None:
    """On a stream that is held up: work elsewhere would come too early."""
    leaves = [drawn(2, heads, 190, HDIM).requires_grad_() for heads in (8, 2, 2)]
    with on_new_stream():
        sleep()
        out = kernelwright_torch.scaled_dot_product_attention(*leaves, enable_gqa=True, mask=mask)
        late = torch.randn_like(out)
        grads = torch.autograd.grad(out, leaves, late)
    synchronize()
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    wanted = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=mask is not None, enable_gqa=True)
    assert near(out, wanted.detach())
    for one, other in zip(grads, torch.autograd.grad(wanted, wide, late.double()), strict=True):
        assert (one.double() - other).norm() <= 2e-2 * other.norm()
