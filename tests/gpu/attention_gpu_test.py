"""Attention kernels on a GPU against float64: $KERNELWRIGHT_GPU_ATTENTION names the library."""

from __future__ import annotations

import math
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no device", allow_module_level=True)

from attention_abi import AttentionKernel, kernels  # noqa: E402
from attention_cases import GUARD, Case, args_of, compare, hdims_of, operands, problem_of, run, scores_of, split  # noqa: E402
from places import CURRENT, ORDINAL  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("KERNELWRIGHT_GPU_ATTENTION", ROOT / ".gpu/attention/libattention.so"))
FWD = [one for one in kernels(LIBRARY) if one.traits.family == 1] if LIBRARY.exists() else []
pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built"),
]
GENERIC, CAUSAL = 8, 4  # bits of traits.masks

CASES = [
    Case((1,), (33,)),
    Case((128, 128), (128, 128), heads=(2, 2)),
    Case((317,), (1111,), heads=(8, 1)),
    Case((1000, 1000), (333, 333)),
    Case((193,), (1,), heads_first=True),
    Case((640, 640, 640), (577, 577, 577), heads=(6, 2), heads_first=True, lse=False),
    Case((70,), (0,)),
    Case((257, 257), (1000, 1000), counts=(999, 130)),
    Case((129, 129, 129), (400, 400, 400), counts=(400, 0, 1), heads_first=True),
    Case((5, 0, 300, 1, 128), (7, 9, 300, 1000, 0), group=True),
    Case((1021, 1, 64, 65), (1021, 513, 64, 190), heads=(8, 1), group=True),
]
WINDOWS = [
    ("bottom_right", (-1, 0)),
    ("top_left", (-1, 0)),
    ("bottom_right", (100, 0)),
    ("top_left", (64, 17)),
    ("bottom_right", (0, 0)),
    ("bottom_right", (300, -1)),
    ("top_left", (-1, 200)),
    ("none", (-1, -1)),
]


def cases_of(kernel: AttentionKernel) -> list[Case]:
    """Every case with every mask that the kernel serves."""
    traits = kernel.traits
    masks = [("none", (-1, -1))]
    if traits.masks & CAUSAL:
        masks = WINDOWS[:2]
    if traits.masks & GENERIC:
        masks = WINDOWS
    like = scores_of(kernel, 0)  # a forward kernel has one kind
    cases = [replace(case, mask=mask, window=window, **like) for case in CASES for mask, window in masks]
    if traits.sinks & 2:
        cases += [replace(case, sink=True) for case in cases[::3]]
    return cases


def launched(kernel: AttentionKernel, case: Case, seed: int) -> Any:
    x = operands(case, kernel.dtype, hdims_of(kernel, seed), seed)
    asked = problem_of(case, kernel.dtype, x)
    assert kernel.supports(asked) == ""
    run(kernel, asked, args_of(case, x))
    return x


@pytest.mark.parametrize("attention", FWD, ids=lambda kernel: kernel.name)
def test_forward_is_right(attention: AttentionKernel) -> None:
    wrong = []
    for seed, case in enumerate(cases_of(attention)):
        try:
            compare(case, attention.dtype, launched(attention, case, seed))
        except AssertionError as error:
            wrong.append(f"{case}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("attention", FWD, ids=lambda attention: attention.name)
def test_forward_is_right_on_random_problems(attention: AttentionKernel) -> None:
    random_ = random.Random(attention.name)
    served = cases_of(attention)
    wrong = []
    for seed in range(60):
        batch, hk = random_.randint(1, 4), random_.choice([1, 2, 3])
        group = random_.random() < 0.5
        lengths = [(random_.randint(1, 700), random_.randint(0, 900)) for _ in range(batch if group else 1)]
        queries, keys = zip(*(lengths if group else lengths * batch), strict=True)
        like = random_.choice(served)
        heads = (hk * random_.choice([1, 4, 8]), hk)
        case = replace(like, queries=queries, keys=keys, heads=heads, group=group, counts=())
        try:
            compare(case, attention.dtype, launched(attention, case, seed))
        except AssertionError as error:
            wrong.append(f"{case}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("attention", FWD, ids=lambda attention: attention.name)
@pytest.mark.parametrize("group", [False, True])
def test_nothing_of_one_request_reaches_another_one(attention: AttentionKernel, group: bool) -> None:
    """NaN in the keys and values behind the last key of a request: 0 * NaN would be NaN."""
    case = next(one for one in cases_of(attention) if one.queries == CASES[9 if group else 7].queries)
    case = replace(case, queries=(150, 70, 90), keys=(150, 70, 200), group=True) if group else case
    x = operands(case, attention.dtype, (attention.traits.hdim_q, attention.traits.hdim_v))
    if group:
        for tensor, keys in ((x.q, False), (x.k, True), (x.v, True)):
            split(case, x, tensor, 1, keys).fill_(math.nan)
    else:
        for tensor in (x.k, x.v):
            for request, count in enumerate(case.counts):
                tensor[request, count:] = math.inf
    run(attention, problem_of(case, attention.dtype, x), args_of(case, x))
    compare(case, attention.dtype, x, skip=1 if group else None)


@pytest.mark.parametrize("attention", FWD, ids=lambda attention: attention.name)
def test_results_repeat(attention: AttentionKernel) -> None:
    case = replace(cases_of(attention)[-1], queries=(900, 333), keys=(900, 1200), group=True, counts=())
    first, second = (launched(attention, case, 3) for _ in range(2))
    assert torch.equal(first.o, second.o) and torch.equal(first.lse, second.lse)


@pytest.mark.skipif(ORDINAL != CURRENT, reason="torch captures on the current device")
def test_a_graph_is_replayed_with_other_lengths() -> None:
    kernel = FWD[0]
    case = replace(cases_of(kernel)[0], queries=(100, 300, 28), keys=(100, 300, 28), group=True, heads=(4, 2))
    x = operands(case, kernel.dtype, (kernel.traits.hdim_q, kernel.traits.hdim_v))
    asked = problem_of(case, kernel.dtype, x)
    nbytes = kernel.workspace_bytes(asked)
    workspace = torch.empty(nbytes, device=x.q.device, dtype=torch.uint8)
    plan, args = kernel.plan(asked), args_of(case, x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.launch(plan, args, torch.cuda.current_stream().cuda_stream, workspace.data_ptr(), nbytes)
    for lengths in ((100, 300, 28), (1, 127, 300)):
        changed = replace(case, queries=lengths, keys=lengths)
        sums = torch.tensor([0, *lengths], device=x.q.device).cumsum(0).int()
        x.cu_q.copy_(sums)
        x.cu_k.copy_(sums)
        x.buffer.fill_(math.nan)
        x.lse.fill_(math.nan)
        graph.replay()
        torch.cuda.synchronize()
        compare(changed, kernel.dtype, x)


def test_what_is_not_served_is_refused() -> None:
    kernel = FWD[0]
    case = cases_of(kernel)[1]
    x = operands(case, kernel.dtype, (kernel.traits.hdim_q, kernel.traits.hdim_v))
    for change, word in (
        ({"scale": 0.0}, "scale"),
        ({"max_seqlen_q": 1 << 30}, "max_seqlen_q"),
        ({"hdim_q": 76}, "hdim_q"),
        ({"hdim_v": 264}, "hdim_v"),
    ):
        asked = problem_of(case, kernel.dtype, x)
        for name, value in change.items():
            setattr(asked, name, value)
        assert word in kernel.supports(asked)
    asked = problem_of(case, kernel.dtype, x)
    asked.k.row += 1
    assert "row stride of k" in kernel.supports(asked)
    args = args_of(case, x)
    args.o = None
    with pytest.raises(RuntimeError, match="o is null"):
        run(kernel, problem_of(case, kernel.dtype, x), args)
    assert bool(x.buffer.isnan().all()) and GUARD
