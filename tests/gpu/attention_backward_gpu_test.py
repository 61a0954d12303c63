"""Gradients of attention on a GPU against float64; see attention_gpu_test."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no device", allow_module_level=True)

from attention_abi import AttentionKernel, kernels, strides  # noqa: E402
from attention_cache_gpu_test import named  # noqa: E402
from attention_cases import (  # noqa: E402
    Case,
    Operands,
    args_of,
    hdims_of,
    operands,
    problem_of,
    reference,
    run,
    scores_of,
    split,
)
from attention_gpu_test import CASES, CAUSAL, GENERIC, LIBRARY, WINDOWS  # noqa: E402

DOT, GRADIENTS = 37, 38
ALL = list(kernels(LIBRARY)) if LIBRARY.exists() else []
BACKWARD = [one for one in ALL if one.traits.family == 8]
# Twice what torch's flash backend shows on such operands.
TOLERANCE = 6e-3
pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built"),
]


@dataclass
class Wanted:
    """O, LSE, the gradients of Q, K and V of each request in float64 by torch's autograd, and what rounding adds."""

    outs: list[Any]
    lses: list[Any]
    gradients: list[list[Any]]
    # What rounding O to the operands' type adds to the gradients by D = sum(dO * O). That is much where one key
    # has nearly all of a row's probability.
    rounding: list[list[Any]]


def wanted(case: Case, x: Operands, d_o: Any) -> Wanted:
    """What a kernel is to compute."""
    expected = Wanted([], [], [], [])
    for request in range(len(case.queries)):
        parts = [split(case, x, t, request, keys) for t, keys in ((x.q, False), (x.k, True), (x.v, True))]
        leaves = [part.double().requires_grad_() for part in parts]
        bias = x.bias
        if case.bias == "elementwise":
            first = case.bounds()[request][0] if case.group else 0
            bias = x.bias[:, first : first + leaves[0].shape[0], : leaves[1].shape[0]]
        o, lse = reference(*leaves, case, leaves[0].shape[-1] ** -0.5, None, bias)
        given = split(case, x, d_o, request, False).double()
        rounded = (given * (o.detach().to(x.o.dtype).double() - o.detach())).sum(-1).mT
        expected.gradients.append(_gradients((o * given).sum(), leaves))
        expected.rounding.append(_gradients((lse * rounded)[lse.isfinite()].sum(), leaves))
        expected.outs.append(o.detach())
        expected.lses.append(lse.detach())
    return expected


def _gradients(total: Any, leaves: list[Any]) -> list[Any]:
    if not total.requires_grad:  # LSE of queries without keys is no function of the operands
        return [torch.zeros_like(leaf) for leaf in leaves]
    grads = torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, grads, strict=True)]


def computed(
    kernel: AttentionKernel, case: Case, seed: int, deterministic: bool = False
) -> tuple[Operands, list[Any], Wanted]:
    """Operands, the gradients of a kernel, and what is wanted."""
    torch.manual_seed(seed)
    x = operands(case, kernel.dtype, hdims_of(kernel, seed), seed)
    d_o = torch.randn(x.o.shape, device=x.o.device).to(x.o.dtype)
    exact = wanted(case, x, d_o)
    for request, (o, lse) in enumerate(zip(exact.outs, exact.lses, strict=True)):
        split(case, x, x.o, request, False).copy_(o)
        first = case.bounds()[request][0]
        (x.lse[:, first : first + len(o)] if case.group else x.lse[request]).copy_(lse)
    dq, dk, dv = (torch.full_like(t, math.nan) for t in (x.q, x.k, x.v))
    d = torch.full_like(x.lse, math.nan)
    asked, args = problem_of(replace(case, lse=False), kernel.dtype, x), args_of(case, x)
    order = "sh" if case.group else "bhs" if case.heads_first else "bsh"
    for name, tensor in (("d_o", d_o), ("dq", dq), ("dk", dk), ("dv", dv)):
        setattr(asked, name, strides(tensor, order))
        setattr(args, name, tensor.data_ptr())
    args.lse = x.lse.data_ptr()
    asked.deterministic = int(deterministic)
    asked.op, args.d = DOT, d.data_ptr()
    dot = next(one for one in ALL if one.descriptor.op == DOT and not one.supports(asked))
    run(dot, asked, args)
    asked.op = GRADIENTS
    assert kernel.supports(asked) == ""
    run(kernel, asked, args)
    return x, [dq, dk, dv], exact


def errors(case: Case, x: Operands, grads: list[Any], exact: Wanted) -> list[str]:
    """Each gradient that is off by more than TOLERANCE, and by more than twice what rounding O adds."""
    off = []
    for index, name in enumerate(("dq", "dk", "dv")):
        got = [split(case, x, grads[index], r, index > 0).double() for r in range(len(exact.gradients))]
        want = torch.cat([one[index].flatten() for one in exact.gradients])
        if not want.numel():
            continue
        # Some are zero, where a query sees one key: what is left is the rounding of sums in fp32.
        size = max(float(want.norm()), 0.05, 1.5e-4 * math.sqrt(want.numel()))
        error = float((torch.cat([one.flatten() for one in got]) - want).norm()) / size
        rounding = float(torch.cat([one[index].flatten() for one in exact.rounding]).norm()) / size
        if not error <= max(TOLERANCE, 2 * rounding):
            off.append(f"{case}: {name} {error:.1e}, rounding {rounding:.1e}")
    return off


def cases_of(kernel: AttentionKernel) -> list[Case]:
    masks = kernel.traits.masks
    windows = WINDOWS if masks & GENERIC else WINDOWS[:2] if masks & CAUSAL else [("none", (-1, -1))]
    served = [case for case in CASES if kernel.traits.groups & 2 or not case.group]
    masked = [(case, mask, window) for case in served for mask, window in windows]
    return [
        replace(case, mask=mask, window=window, **scores_of(kernel, place))
        for place, (case, mask, window) in enumerate(masked)
    ]


@pytest.mark.parametrize("attention", BACKWARD, ids=named)
def test_gradients_are_right(attention: AttentionKernel) -> None:
    wrong = []
    for seed, case in enumerate(cases_of(attention)):
        x, grads, exact = computed(attention, case, seed)
        wrong += errors(case, x, grads, exact)
        if case.counts:  # keys that do not count have gradients of zero
            for tensor in grads[1:]:
                rows = tensor.transpose(1, 2) if case.heads_first else tensor
                if not all(bool((rows[r, count:] == 0).all()) for r, count in enumerate(case.counts)):
                    wrong.append(f"{case}: gradients of keys that do not count")
    assert not wrong, "\n".join(wrong)


def drawn(random: Random, kernel: AttentionKernel) -> Case:
    """A random problem: lengths around those of tiles, any mask that the kernel serves, heads that share K and V."""
    group = bool(kernel.traits.groups & 2) and random.random() < 0.5
    count, shared = random.randint(1, 5), random.choice((1, 1, 2, 4, 5))
    around = (0, 1, 63, 64, 65, 127, 128, 129, 200, 321, 515)
    queries, keys = ([max(0, random.choice(around) + random.randint(-3, 3)) for _ in range(count)] for _ in range(2))
    if not group:
        queries, keys = [max(queries[0], 1)] * count, [keys[0]] * count
    counts = () if group or random.random() < 0.7 else tuple(random.randint(0, keys[0]) for _ in keys)
    mask, window = "none", (-1, -1)
    if kernel.traits.masks & GENERIC:
        mask = random.choice(("none", "top_left", "bottom_right"))
        widths = (random.choice((-1, 0, 5, 100, 300)), random.choice((-1, 0, 0, 7, 150)))
        window = (-1, -1) if mask == "none" else widths
    elif kernel.traits.masks & CAUSAL:
        mask, window = random.choice(("top_left", "bottom_right")), (-1, 0)
    heads = random.randint(1, 3)
    first = not group and random.random() < 0.5
    options = {"mask": mask, "window": window, "group": group, "heads_first": first, "counts": counts}
    options |= scores_of(kernel, random.randint(0, 11))
    return Case(tuple(queries), tuple(keys), (heads * shared, heads), **options)


@pytest.mark.parametrize("attention", BACKWARD, ids=named)
def test_gradients_of_random_problems(attention: AttentionKernel) -> None:
    random, wrong = Random(attention.name), []
    deterministic = bool(attention.traits.deterministics & 2)
    for seed in range(40):
        case = drawn(random, attention)
        if not (sum(case.queries) and sum(case.keys)):
            continue
        x, grads, exact = computed(attention, case, seed, deterministic and seed % 2 == 0)
        wrong += errors(case, x, grads, exact)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("attention", BACKWARD, ids=named)
def test_gradients_repeat(attention: AttentionKernel) -> None:
    """All of them where the problem asks for it and the kernel serves it, else those of K and V."""
    deterministic = bool(attention.traits.deterministics & 2)
    first_that_repeats = 0 if deterministic else 1
    for mask, window in {(one.mask, one.window) for one in cases_of(attention)}:
        case = Case((1400, 1400), (1700, 1700), (8, 2), mask=mask, window=window, **scores_of(attention, 1))
        runs = []
        for _ in range(3):
            torch.manual_seed(1)
            runs.append(computed(attention, case, 5, deterministic)[1][first_that_repeats:])
        assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run, strict=True)), (mask, window)
