"""Split-KV, paged and append kernels on a GPU against float64; see attention_gpu_test."""

from __future__ import annotations

import ctypes
import math
import random
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no device", allow_module_level=True)

from attention_abi import COMBINE, AppendArgs, AppendProblem, AttentionKernel, Strides, kernels  # noqa: E402
from attention_caches import BLOCK, LIST, paged  # noqa: E402
from attention_cases import TYPES, Case, args_of, compare, hdims_of, operands, problem_of, run, scores_of  # noqa: E402
from attention_gpu_test import CAUSAL, GENERIC, LIBRARY, WINDOWS  # noqa: E402
from places import DEVICE  # noqa: E402
from raw_abi import DTYPES  # noqa: E402

ALL = list(kernels(LIBRARY)) if LIBRARY.exists() else []
SPLIT, PREFILL, APPEND = ([one for one in ALL if one.traits.family == family] for family in (2, 4, 6))
pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built"),
]


def named(kernel: AttentionKernel) -> str:
    return kernel.name


def masks_of(kernel: AttentionKernel) -> list[tuple[str, tuple[int, int]]]:
    masks = kernel.traits.masks
    return WINDOWS if masks & GENERIC else WINDOWS[:2] if masks & CAUSAL else [("none", (-1, -1))]


def attend(
    kernel: AttentionKernel, case: Case, seed: int, form: int, size: int, heads_first: bool, splits: int
) -> None:
    """One part, and a combination where it leaves splits, compared with float64."""
    x = operands(case, kernel.dtype, hdims_of(kernel, seed), seed)
    asked, args = problem_of(case, kernel.dtype, x), args_of(case, x)
    if form:
        pages = paged(case, x, form, size, heads_first, seed)
        pages.pose(asked, args)
    asked.num_splits, asked.leaves_splits = splits, int(splits > 1)
    rows = x.lse.numel()
    partial = torch.full((splits, rows, x.v.shape[-1]), math.nan, device=DEVICE)
    lse = torch.full((splits, rows), math.nan, device=DEVICE)
    args.o_splits, args.lse_splits = partial.data_ptr(), lse.data_ptr()
    assert kernel.supports(asked) == ""
    run(kernel, asked, args)
    if splits > 1:
        asked.op, asked.leaves_splits, asked.page_table, asked.kv_lengths = COMBINE, 0, 0, 0
        combine = next(one for one in ALL if one.descriptor.op == COMBINE and not one.supports(asked))
        run(combine, asked, args)
    compare(case, kernel.dtype, x)


def drawn(kernel: AttentionKernel, seed: int, queries: int) -> tuple[Case, int, int, bool]:
    """A random case, a form of page table (0: none), a page size, and whether heads come first in a page."""
    random_ = random.Random(f"{kernel.name} {seed}")
    mask, window = random_.choice(masks_of(kernel))
    batch, hk, group = random_.randint(1, 5), random_.choice([1, 2, 4]), random_.random() < 0.5
    lengths = [(random_.randint(1, queries), random_.choice([0, 1, 63, 700, 1500, 2049])) for _ in range(batch)]
    if not group:
        lengths = [(lengths[0][0], max(length for _, length in lengths))] * batch
    q, k = zip(*lengths, strict=True)
    heads = (hk * random_.choice([1, 3, 4, 8, 20]), hk)
    sink = bool(kernel.traits.sinks & 2) and random_.random() < 0.3
    case = Case(q, k, heads, group, mask, window, sink=sink, **scores_of(kernel, seed))
    form = random_.choice([form for form in (0, BLOCK, LIST) if kernel.traits.page_tables >> form & 1])
    if not group and form != 0:
        case = replace(case, counts=tuple(random_.randint(0, k[0]) for _ in range(batch)))
    return case, form, random_.choice([8, 16, 24, 64, 256]), random_.random() < 0.5


@pytest.mark.parametrize("attention", SPLIT, ids=named)
def test_split_kv_is_right(attention: AttentionKernel) -> None:
    wrong = []
    for seed in range(150):
        case, form, size, heads_first = drawn(attention, seed, 6)
        size = size if seed % 3 else 1 + seed % 5
        splits = (1, 2, 5, 33)[seed % 4]
        try:
            attend(attention, case, seed, form, size, heads_first, splits)
        except AssertionError as error:
            wrong.append(f"{case} {form} {size} {heads_first} splits {splits}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("attention", PREFILL, ids=named)
def test_paged_prefill_is_right(attention: AttentionKernel) -> None:
    wrong = []
    for seed in range(100):
        case, form, size, heads_first = drawn(attention, seed, 500)
        case = replace(case, sink=False)
        try:
            attend(attention, case, seed, form, size, heads_first, 1)
        except AssertionError as error:
            wrong.append(f"{case} {form} {size} {heads_first}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("attention", PREFILL, ids=named)
def test_pages_that_no_box_divides_are_refused(attention: AttentionKernel) -> None:
    case, _, _, heads_first = drawn(attention, 1, 50)
    case = replace(case, group=True, queries=(5,), keys=(30,), counts=(), sink=False)
    x = operands(case, attention.dtype, (attention.traits.hdim_q, attention.traits.hdim_v))
    asked, args = problem_of(case, attention.dtype, x), args_of(case, x)
    paged(case, x, LIST, 4, heads_first).pose(asked, args)
    assert "page_size is 4" in attention.supports(asked)


def turned(x: Any, places: Any, rope: int, cos: Any, sin: Any) -> Any:
    """Rows x heads x hdim in float64, turned by the angles of their places."""
    if not rope:
        return x.double()
    x, half = x.double(), cos.shape[1]
    c, s = cos[places].double()[:, None], sin[places].double()[:, None]
    head, rest = x[..., : 2 * half], x[..., 2 * half :]
    a, b = (head[..., 0::2], head[..., 1::2]) if rope == 1 else (head[..., :half], head[..., half:])
    one, other = a * c - b * s, a * s + b * c
    both = torch.stack([one, other], -1).flatten(-2) if rope == 1 else torch.cat([one, other], -1)
    return torch.cat([both, rest], -1)


@pytest.mark.parametrize("attention", APPEND, ids=named)
@pytest.mark.parametrize("form", [0, BLOCK])
@pytest.mark.parametrize("less", [(0, 0), (32, 32), (48, 48), (64, 64), (0, 64)])
@pytest.mark.parametrize("rope", [0, 1, 2])
def test_append_is_right(attention: AttentionKernel, form: int, less: tuple[int, int], rope: int) -> None:
    traits, dtype = attention.traits, TYPES[attention.dtype]
    hdim, hdim_v = (max(most - by, 16) for most, by in zip((traits.hdim_q, traits.hdim_v), less, strict=True))
    if not traits.ropes >> rope & 1:
        pytest.skip("the kernel turns otherwise")
    batch, hq, hk, new, size, capacity, places = 3, 8, 2, 5, 16, 96, 128
    random_ = torch.Generator(DEVICE).manual_seed(1)
    draw = lambda *shape: torch.randn(shape, generator=random_, device=DEVICE).to(dtype)  # noqa: E731
    q, k, v = draw(batch, new, hq, hdim), draw(batch, new, hk, hdim), draw(batch, hk, new, hdim_v)
    rotary = hdim // 32 * 16 if rope else 0
    angles = torch.rand(places, max(rotary // 2, 1), generator=random_, device=DEVICE) * 6
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    before = torch.tensor([0, 37, 90], device=DEVICE, dtype=torch.int32)
    pages = capacity // size
    count = batch * pages if form else batch
    shape = (count, size if form else capacity, hk)
    caches = [torch.full((*shape, last), 7.0, device=DEVICE, dtype=dtype) for last in (hdim, hdim_v)]
    table = torch.randperm(batch * pages, device=DEVICE).view(batch, pages).int()
    out = torch.full_like(q, math.nan)
    p = AppendProblem(ctypes.sizeof(AppendProblem), 36, 1, DTYPES[attention.dtype])
    p.dtype_rotary, p.rope, p.rotates_q, p.page_table = (
        (DTYPES[attention.dtype] if rope else 0),
        rope,
        int(rope > 0),
        form,
    )
    p.batch, p.heads_q, p.heads_kv, p.hdim_q, p.hdim_v = batch, hq if rope else 0, hk, hdim, hdim_v
    p.seqlen_q, p.seqlen_new, p.capacity = new if rope else 0, new, capacity
    p.pages, p.page_size, p.page_table_stride = (count, size, pages) if form else (0, 0, 0)
    p.rotary_dim, p.rotary_places = rotary, places if rope else 0
    for name, tensor, head, row in (("q", q, 2, 1), ("q_out", out, 2, 1), ("k", k, 2, 1), ("v", v, 1, 2),
                                    ("k_cache", caches[0], 2, 1), ("v_cache", caches[1], 2, 1)):  # fmt: skip
        setattr(p, name, Strides(tensor.stride(0), tensor.stride(head), tensor.stride(row)))
    pointers = (q, out, k, v, *caches, before, table, cos, sin)
    args = AppendArgs(ctypes.sizeof(AppendArgs), 0, *(tensor.data_ptr() for tensor in pointers))
    assert attention.supports(p) == ""
    run(attention, p, args)
    for cache, rows, kind in ((caches[0], k, rope), (caches[1], v.transpose(1, 2), 0)):
        whole = torch.stack([cache[table[b].long()].flatten(0, 1) if form else cache[b] for b in range(batch)])
        for b in range(batch):
            at = [int(before[b]) + i for i in range(new)]
            kept = [i for i, place in enumerate(at) if place < capacity]
            want = turned(rows[b], torch.tensor(at, device=DEVICE), kind, cos, sin)
            for i in kept:
                torch.testing.assert_close(whole[b, at[i]].double(), want[i], rtol=1e-2, atol=1e-2)
            others = torch.ones(capacity, dtype=torch.bool, device=DEVICE)
            others[[at[i] for i in kept]] = False
            assert bool((whole[b][others] == 7.0).all())
    if rope:
        for b in range(batch):
            at = torch.tensor([int(before[b]) + i for i in range(new)], device=DEVICE)
            torch.testing.assert_close(out[b].double(), turned(q[b], at, rope, cos, sin), rtol=1e-2, atol=1e-2)
        args.q_out = q.data_ptr()  # where it lies
        p.q_out = p.q
        run(attention, p, args)
        assert torch.equal(q, out)
