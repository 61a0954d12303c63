"""Attention of requests of different lengths as torch sees it: against torch's own of each. Kernels are mocks."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.dispatch import ArrayError
from kernelwright.torch import varlen_attn
from kernelwright.torch.operators.attention_varlen import GRADIENT, OPERATOR
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import scaled_dot_product_attention

QUERIES, KEYS = (3, 0, 5, 1), (7, 2, 5, 9)
Tensors = tuple[torch.Tensor, ...]

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def starts(lengths: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)


ROWS, COLUMNS = starts(QUERIES), starts(KEYS)
LENGTHS: tuple[Any, ...] = (ROWS, COLUMNS, max(QUERIES), max(KEYS))


def qkv(heads: int = 4, kv_heads: int = 4, hdim_v: int = 8) -> Tensors:
    shapes = (sum(QUERIES), heads, 8), (sum(KEYS), kv_heads, 8), (sum(KEYS), kv_heads, hdim_v)
    return tuple(torch.randn(*shape, requires_grad=True) for shape in shapes)


def reference(
    operands: Tensors, window: tuple[int, int] = (-1, -1), bottom: bool = True, used: tuple[int, ...] = KEYS,
    scale: float | None = None,
) -> torch.Tensor:  # fmt: skip
    """Request by request. Rows that see no key are zeros."""
    q, k, v = operands
    per_request = []
    for b, (n, m) in enumerate(zip(QUERIES, used, strict=True)):
        own, seen = slice(ROWS[b], ROWS[b + 1]), slice(COLUMNS[b], int(COLUMNS[b]) + m)
        distance = torch.arange(m)[None] - torch.arange(n)[:, None] - (m - n if bottom else 0)
        sees = torch.ones(n, m, dtype=torch.bool)
        sees &= (distance >= -window[0]) if window[0] >= 0 else True
        sees &= (distance <= window[1]) if window[1] >= 0 else True
        heads = (one.transpose(0, 1) for one in (q[own], k[seen], v[seen]))
        out = scaled_dot_product_attention(*heads, attn_mask=sees, enable_gqa=True, scale=scale)
        per_request.append(torch.where(sees.any(1)[:, None], out, 0.0).transpose(0, 1))
    return torch.cat(per_request)


def same(actual: torch.Tensor, wanted: torch.Tensor, operands: Tensors) -> None:
    """Results, and gradients of a weighted sum."""
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-5)
    weights = torch.randn_like(wanted)
    pairs = [torch.autograd.grad(result, operands, weights) for result in (actual, wanted)]
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, torch.nan_to_num(other), atol=1e-5, rtol=1e-4)


NONE: tuple[Any, ...] = (None, None, None, None)
OPERANDS: dict[str, tuple[Any, ...]] = {
    "plain": (*qkv(), *LENGTHS, *NONE),
    "causal": (*qkv(8, 2, 16), *LENGTHS, *NONE, "bottom_right", -1, 0, 0.3, 2.0),
    "sinks and used keys": (
        *qkv(), *LENGTHS, torch.tensor([7, 1, 2, 3], dtype=torch.int32), None, torch.randn(4, requires_grad=True), None,
    ),
    "dropout": (*qkv(), *LENGTHS, None, torch.rand(4), None, torch.tensor([5, 7]), "top_left", 3, 0, None, 0.0, 0.25),
    "no gradient": (*(one.detach() for one in qkv()), *LENGTHS, *NONE, "none", -1, -1, None, 0.0, 0.0, False),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_opcheck(name: str) -> None:
    statuses = torch.library.opcheck(OPERATOR, OPERANDS[name])
    assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


def test_opcheck_of_gradients() -> None:
    operands = tuple(one.detach() for one in qkv())
    out, lse = OPERATOR(*operands, *LENGTHS, *NONE)
    statuses = torch.library.opcheck(GRADIENT, (*operands, out, torch.randn_like(out), lse, *LENGTHS, None, None, None))
    assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0), (1, 3)])
@pytest.mark.parametrize("align", ["bottom_right", "top_left"])
def test_it_is_torch_s_own_of_each_request(window: tuple[int, int], align: Any) -> None:
    operands = qkv(8, 2, 16)
    output = varlen_attn(*operands, *LENGTHS, window_size=window, align=align, enable_gqa=True, scale=0.3)
    same(output, reference(operands, window, align == "bottom_right", scale=0.3), operands)


def test_only_the_keys_that_count_are_seen() -> None:
    operands, used = qkv(), (7, 1, 2, 3)
    output = varlen_attn(*operands, *LENGTHS, seqused_k=torch.tensor(used, dtype=torch.int32))
    same(output, reference(operands, used=used), operands)


def test_lse_and_sinks() -> None:
    q, k, v = operands = qkv()
    sinks = torch.randn(4, requires_grad=True)
    output, lse = varlen_attn(*operands, *LENGTHS, sinks=sinks, return_lse=True)
    parts, sums = [], []
    for b in range(len(QUERIES)):
        own, seen = slice(ROWS[b], ROWS[b + 1]), slice(COLUMNS[b], COLUMNS[b + 1])
        scores = torch.einsum("qhd,khd->hqk", q[own], k[seen]) * 8**-0.5
        with_sink = torch.cat([scores, sinks[:, None, None].expand(4, scores.shape[1], 1)], -1)
        parts.append(torch.einsum("hqk,khd->qhd", with_sink.softmax(-1)[..., :-1], v[seen]))
        sums.append(with_sink.logsumexp(-1))
    torch.testing.assert_close(lse, torch.cat(sums, 1), atol=1e-5, rtol=1e-5)
    assert not lse.requires_grad
    same(output, torch.cat(parts), (*operands, sinks))


def test_dropout_is_the_seed_s_and_that_of_the_gradient() -> None:
    operands = qkv()
    options: dict[str, Any] = {"dropout_p": 0.5, "seed": torch.tensor([3, 4])}
    output = varlen_attn(*operands, *LENGTHS, **options)
    torch.testing.assert_close(varlen_attn(*operands, *LENGTHS, **options), output)
    assert not output.allclose(varlen_attn(*operands, *LENGTHS, dropout_p=0.5))
    # O is linear in V, so the sum of dV * V is that of dO * O where both passes drop the same.
    weights = torch.randn_like(output)
    (dv,) = torch.autograd.grad(output, operands[2], weights)
    torch.testing.assert_close((dv * operands[2]).sum(), (output * weights).sum(), atol=1e-4, rtol=1e-4)


def test_results_without_data() -> None:
    with FakeTensorMode():
        q, k, v = torch.empty(9, 4, 8), torch.empty(20, 2, 8), torch.empty(20, 2, 16)
        rows = torch.empty(5, dtype=torch.int32)
        output, lse = varlen_attn(q, k, v, rows, rows, 5, 9, enable_gqa=True, return_lse=True)
        assert output.shape == (9, 4, 16) and lse.shape == (4, 9) and lse.dtype == torch.float32
        for wrong, words in (
            ((q, k[..., :7], v), "head dimension 8 and key 7"), ((q, k, v[:3]), "20 rows and value 3"),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match=words):
                varlen_attn(*wrong, rows, rows, 5, 9, enable_gqa=True)
        with pytest.raises(ArrayError, match=r"query has shape \(1, 9, 4, 8\); allowed: \(rows of all requests,"):
            varlen_attn(q[None], k, v, rows, rows, 5, 9, enable_gqa=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_in_one_graph(dynamic: bool) -> None:
    def layer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: torch.Tensor, longest: int) -> torch.Tensor:
        return varlen_attn(q * 2, k, v, rows, COLUMNS, longest, max(KEYS), window_size=(-1, 0)).square().sum()

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for longest in (max(QUERIES), max(QUERIES) + 2):
        operands = qkv()
        wanted = reference((operands[0] * 2, *operands[1:]), window=(-1, 0)).square().sum()
        expected = torch.autograd.grad(wanted, operands)
        gradients = torch.autograd.grad(compiled(*operands, ROWS, longest), operands)
        for one, other in zip(gradients, expected, strict=True):
            torch.testing.assert_close(one, torch.nan_to_num(other), atol=1e-4, rtol=1e-4)


def test_refusals() -> None:
    q, k, v = qkv(8, 2)
    with pytest.raises(ArrayError, match=r"query has 8 heads and key 2; pass enable_gqa=True"):
        varlen_attn(q, k, v, *LENGTHS)
    with pytest.raises(ArrayError, match=r"align is 'left'; allowed: 'top_left', 'bottom_right'"):
        varlen_attn(q, k, v, *LENGTHS, enable_gqa=True, align="left")  # type: ignore[arg-type]
    with pytest.raises(ArrayError, match=r"cu_seq_q is torch.int64; allowed: torch.int32"):
        varlen_attn(q, k, v, ROWS.long(), *LENGTHS[1:], enable_gqa=True)
    with pytest.raises(ArrayError, match=r"alibi_slopes requires grad"):
        varlen_attn(q, k, v, *LENGTHS, enable_gqa=True, alibi_slopes=torch.rand(8, requires_grad=True))
    output = varlen_attn(q, k, v, *LENGTHS, enable_gqa=True)
    (first,) = torch.autograd.grad(output.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"no second derivative"):
        first.sum().backward()
