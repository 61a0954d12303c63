"""``scaled_dot_product_attention`` by real CPU kernels against torch's own, results and gradients, in numbers.

Errors are against torch in float64; at most twice those of torch in the same precision, or three roundings of the
largest element where torch is better by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from kernelwright.dispatch import Dispatcher
from kernelwright.torch import scaled_dot_product_attention, varlen_attn

REFERENCE = torch.nn.functional.scaled_dot_product_attention
ROUNDING = {torch.float32: 2.0**-19, torch.bfloat16: 2.0**-8}


@dataclass(frozen=True)
class Case:
    """Shapes and features of one call."""

    batch: int = 2
    heads: int = 4
    kv_heads: int = 4
    queries: int = 65
    keys: int = 65
    hdim: int = 64
    hdim_v: int = 64
    causal: bool = False
    mask: tuple[int, ...] | None = None
    boolean: bool = False
    scale: float | None = None
    rows_first: bool = False


CASES = {
    "plain": Case(),
    "causal": Case(causal=True),
    "one query": Case(queries=1, keys=300),
    "more keys": Case(queries=17, keys=211),
    "more queries": Case(queries=130, keys=33),
    "shared heads": Case(heads=8, kv_heads=2, causal=True),
    "one head for all": Case(heads=8, kv_heads=1),
    "narrow heads": Case(hdim=32, hdim_v=32),
    "wide heads": Case(hdim=128, hdim_v=128, causal=True),
    "widest heads": Case(hdim=256, hdim_v=256, queries=40, keys=40),
    "odd heads": Case(hdim=72, hdim_v=40),
    "own scale": Case(scale=0.03),
    "a bias for all": Case(mask=(65, 65)),
    "a bias for each head": Case(mask=(1, 4, 65, 65)),
    "hidden keys": Case(mask=(2, 1, 1, 65), boolean=True),
    "rows before heads": Case(rows_first=True, causal=True),
    "long rows": Case(batch=1, heads=2, kv_heads=2, queries=513, keys=777),
}


def operands(case: Case) -> list[torch.Tensor]:
    """Q, K, V and the mask, if there is one."""

    def some(heads: int, rows: int, hdim: int) -> torch.Tensor:
        if case.rows_first:
            return torch.randn(case.batch, rows, heads, hdim).transpose(1, 2)
        return torch.randn(case.batch, heads, rows, hdim)

    tensors = [
        some(case.heads, case.queries, case.hdim), some(case.kv_heads, case.keys, case.hdim),
        some(case.kv_heads, case.keys, case.hdim_v),
    ]  # fmt: skip
    if case.mask is not None:
        mask = torch.randn(case.mask)
        if case.boolean:
            mask = mask > -0.5
            mask[..., 0] = True
        tensors.append(mask)
    return tensors


def results(function: Any, given: list[torch.Tensor], case: Case, dtype: torch.dtype, weights: Any) -> list[Any]:
    """O, and the gradients of a weighted sum."""
    typed = [
        one if one.dtype == torch.bool else one.to(dtype).requires_grad_() for one in (each.detach() for each in given)
    ]
    out = function(*typed, is_causal=case.causal, scale=case.scale, enable_gqa=case.heads != case.kv_heads)
    inputs = [one for one in typed if one.requires_grad]
    return [out, *torch.autograd.grad(out, inputs, weights.to(dtype))]


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_it_is_torch_s_own(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    given = [one if one.dtype == torch.bool else one.to(dtype) for one in operands(case)]
    weights = torch.randn(case.batch, case.heads, case.queries, case.hdim_v).to(dtype)
    exact = results(REFERENCE, given, case, torch.float64, weights)
    theirs = results(REFERENCE, given, case, dtype, weights)
    mine = results(scaled_dot_product_attention, given, case, dtype, weights)
    for what, *parts in zip(("out", "dq", "dk", "dv", "dbias"), mine, theirs, exact, strict=False):
        actual, other, wanted = (part.double() for part in parts)
        assert actual.shape == wanted.shape and actual.isfinite().all()
        allowed = max(2 * (other - wanted).abs().max().item(), 3 * ROUNDING[dtype] * wanted.abs().max().item())
        error = (actual - wanted).abs().max().item()
        assert error <= allowed, f"{what} is off by {error}, torch by {(other - wanted).abs().max().item()}"


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_requests_of_different_lengths(dtype: torch.dtype, causal: bool) -> None:
    lengths, heads, hdim = (65, 1, 130, 17), 4, 64
    rows = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    given = [torch.randn(sum(lengths), heads, hdim).to(dtype) for _ in range(3)]
    weights = torch.randn(sum(lengths), heads, hdim).to(dtype)

    def by_request(*operands: torch.Tensor) -> torch.Tensor:
        parts = zip(*(one.split(lengths) for one in operands), strict=True)
        each = [REFERENCE(*(one.transpose(0, 1) for one in part), is_causal=causal).transpose(0, 1) for part in parts]
        return torch.cat(each)

    def at_once(*operands: torch.Tensor) -> torch.Tensor:
        longest, window = max(lengths), (-1, 0 if causal else -1)
        ours: torch.Tensor = varlen_attn(*operands, rows, rows, longest, longest, window_size=window)
        return ours

    results = []
    for function, kind in ((at_once, dtype), (by_request, dtype), (by_request, torch.float64)):
        operands = [one.to(kind).requires_grad_() for one in given]
        out = function(*operands)
        results.append([out, *torch.autograd.grad(out, operands, weights.to(kind))])
    for ours, other, wanted in zip(*results, strict=True):
        allowed = max(2 * (other - wanted).abs().max().item(), 3 * ROUNDING[dtype] * wanted.abs().max().item())
        assert (ours.double() - wanted).abs().max().item() <= allowed


def test_tensors_of_8_bits(dispatcher: Dispatcher) -> None:
    factors = [torch.tensor([value]) for value in (0.05, 0.04, 0.03)]
    shapes = (2, 33, 4, 64), (2, 70, 2, 64), (2, 70, 2, 64)
    q, k, v = (
        (torch.randn(shape) / factor).to(torch.float8_e4m3fn) for shape, factor in zip(shapes, factors, strict=True)
    )
    out = dispatcher.attention(q, k, v, descale=tuple(factors), dtype="fp32", mask="top_left")
    assert out.dtype == torch.float32
    wide = [(one.float() * factor).transpose(1, 2) for one, factor in zip((q, k, v), factors, strict=True)]
    wanted = REFERENCE(*wide, is_causal=True, enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-5)
