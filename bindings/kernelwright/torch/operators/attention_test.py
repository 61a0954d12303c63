"""Attention as torch sees it: against torch's own, checked, traced, compiled, refused. Kernels are mocks."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.dispatch import ArrayError, NoKernelError
from kernelwright.torch import scaled_dot_product_attention
from kernelwright.torch.operators import attention_gradient
from kernelwright.torch.operators.attention import OPERATOR
from torch._subclasses.fake_tensor import FakeTensorMode

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
REFERENCE = torch.nn.functional.scaled_dot_product_attention

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def some(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=grad)


def qkv(queries: int = 5, keys: int = 9, heads: int = 4, kv_heads: int = 4, hdim: int = 8) -> Three:
    return some(2, heads, queries, hdim), some(2, kv_heads, keys, hdim), some(2, kv_heads, keys, hdim)


def same(actual: torch.Tensor, wanted: torch.Tensor, operands: tuple[torch.Tensor, ...]) -> None:
    """Results, and gradients of a weighted sum."""
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-5)
    weights = torch.randn_like(wanted)
    pairs = [torch.autograd.grad(result, operands, weights) for result in (actual, wanted)]
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


OPERANDS: dict[str, tuple[Any, ...]] = {
    "plain": (*qkv(), None, None, None, None),
    "causal": (*qkv(), None, None, None, None, "bottom_right", -1, 0, 0.3, 2.0),
    "bias and sinks": (*qkv(), some(1, 4, 1, 9), None, some(4), None),
    "dropout": (*qkv(), None, torch.rand(4), None, torch.tensor([5, 7]), "top_left", 3, 0, None, 0.0, 0.25),
    "no gradient": (*(one.detach() for one in qkv()), None, None, None, None, "none", -1, -1, None, 0.0, 0.0, False),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_opcheck(name: str) -> None:
    statuses = torch.library.opcheck(OPERATOR, OPERANDS[name])
    assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


def test_opcheck_of_gradients() -> None:
    q, k, v = (one.detach() for one in qkv())
    bias = some(1, 4, 5, 9, grad=False)
    out, lse = OPERATOR(q, k, v, bias, None, None, None)
    operands = (q, k, v, out, torch.randn_like(out), lse, bias, None, None, "none", -1, -1, None, 0.0, 0.0, True)
    statuses = torch.library.opcheck(attention_gradient.OPERATOR, operands)
    assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_torch_s_own(causal: bool, scale: float | None) -> None:
    operands = qkv()
    options: dict[str, Any] = {"is_causal": causal, "scale": scale}
    same(scaled_dot_product_attention(*operands, **options), REFERENCE(*operands, **options), operands)


def test_heads_may_be_shared() -> None:
    operands = qkv(heads=6, kv_heads=2)
    output = scaled_dot_product_attention(*operands, enable_gqa=True)
    same(output, REFERENCE(*operands, enable_gqa=True), operands)
    with pytest.raises(ArrayError, match=r"query has 6 heads and key 2; pass enable_gqa=True"):
        scaled_dot_product_attention(*operands)


@pytest.mark.parametrize("shape", [(5, 9), (1, 1, 5, 9), (2, 1, 1, 9), (4, 5, 1)])
def test_masks_are_added_and_have_gradients(shape: tuple[int, ...]) -> None:
    operands = (*qkv(), some(*shape))
    same(scaled_dot_product_attention(*operands), REFERENCE(*operands), operands)


def test_boolean_masks_hide_keys() -> None:
    operands, mask = qkv(), torch.rand(2, 1, 5, 9) < 0.6
    mask[..., 0] = True
    same(scaled_dot_product_attention(*operands, mask), REFERENCE(*operands, mask), operands)
    mask[0, 0, 2] = False  # a row that sees nothing
    output = scaled_dot_product_attention(*operands, mask)
    assert (output[0, :, 2] == 0).all() and output.isfinite().all()
    assert all(one.isfinite().all() for one in torch.autograd.grad(output.sum(), operands))


def test_strides_and_batch_dimensions_are_free() -> None:
    rows_first = tuple(one.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for one in qkv())
    output = scaled_dot_product_attention(*rows_first)
    assert output.transpose(1, 2).is_contiguous()
    same(output, REFERENCE(*rows_first), rows_first)
    packed = some(2, 7, 3, 4, 8)
    parts = packed.permute(2, 0, 3, 1, 4)
    same(scaled_dot_product_attention(*parts), REFERENCE(*parts), (packed,))
    for front in ((), (4,), (2, 3, 4)):
        operands = some(*front, 5, 8), some(*front, 9, 8), some(*front, 9, 16)
        for bias in (some(*front[-1:], 5, 9), some(5, 1)):
            same(scaled_dot_product_attention(*operands, bias), REFERENCE(*operands, bias), (*operands, bias))
    _, lse = scaled_dot_product_attention(some(5, 8), some(9, 8), some(9, 16), return_lse=True)
    assert lse.shape == (5,)
    nothing = scaled_dot_product_attention(some(2, 3, 4, 0, 8), some(2, 3, 4, 9, 8), some(2, 3, 4, 9, 16))
    assert nothing.shape == (2, 3, 4, 0, 16)


def test_sinks_windows_caps_and_slopes() -> None:
    """A reference of torch's elementwise operators, whose gradients autograd knows."""
    q, k, v = operands = qkv(6, 6)
    sinks, slopes = some(4), torch.rand(4)
    place = torch.arange(6)
    distance = place[:, None] - place[None, :]
    scores = 3 * torch.tanh(q @ k.transpose(-1, -2) * 8**-0.5 / 3)
    hidden = (distance < 0) | (distance > 2)
    with_sink = torch.cat([scores.masked_fill(hidden, -torch.inf), sinks.expand(2, 6, 4).mT[..., None]], -1)
    wanted = with_sink.softmax(-1)[..., :-1] @ v
    output, lse = scaled_dot_product_attention(
        *operands, mask="top_left", window=(2, 0), soft_cap=3.0, sinks=sinks, return_lse=True
    )
    torch.testing.assert_close(lse, with_sink.logsumexp(-1), atol=1e-5, rtol=1e-5)
    same(output, wanted, (*operands, sinks))
    absent = torch.full((4,), -torch.inf, requires_grad=True)  # the first rows see nothing
    output = scaled_dot_product_attention(*qkv(6, 2), mask="bottom_right", sinks=absent)
    assert (torch.autograd.grad(output.sum(), absent)[0] == 0).all()
    output = scaled_dot_product_attention(*operands, alibi_slopes=slopes)
    same(output, REFERENCE(*operands, -slopes[:, None, None] * distance.abs()), operands)


def test_dropout_is_the_seed_s() -> None:
    operands = qkv(40, 64)
    options: dict[str, Any] = {"dropout_p": 0.5, "seed": torch.tensor([3, 4])}
    output = scaled_dot_product_attention(*operands, **options)
    torch.testing.assert_close(scaled_dot_product_attention(*operands, **options), output)
    assert not output.allclose(scaled_dot_product_attention(*operands, dropout_p=0.5))
    # What is kept follows from a V of unit rows; the gradient must drop the same.
    q, k, _ = (one.detach() for one in operands)
    units = torch.eye(64).expand(2, 4, 64, 64)
    kept = scaled_dot_product_attention(q, k, units, **options) > 0
    assert 0.45 < kept.float().mean() < 0.55
    p = (operands[0] @ operands[1].transpose(-1, -2) * 8**-0.5).softmax(-1)
    same(output, torch.where(kept, p / 0.5, 0) @ operands[2], operands)
    torch.manual_seed(1)
    drawn = scaled_dot_product_attention(*operands, dropout_p=0.5)
    torch.manual_seed(1)
    torch.testing.assert_close(scaled_dot_product_attention(*operands, dropout_p=0.5), drawn)


def test_results_without_data() -> None:
    with FakeTensorMode():
        q, k, v = torch.empty(2, 4, 5, 8), torch.empty(2, 2, 9, 8), torch.empty(2, 2, 9, 16)
        output, lse = scaled_dot_product_attention(q, k, v, enable_gqa=True, return_lse=True)
        assert output.shape == (2, 4, 5, 16) and lse.shape == (2, 4, 5) and lse.dtype == torch.float32
        with pytest.raises(ArrayError, match=r"query has head dimension 8 and key 7; they must be equal"):
            scaled_dot_product_attention(q, k[..., :7], v, enable_gqa=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_in_one_graph(dynamic: bool) -> None:
    def layer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q * 2, k, v, is_causal=True).square().sum()

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for queries in (5, 7):
        operands = qkv(queries)
        wanted = torch.autograd.grad(REFERENCE(operands[0] * 2, *operands[1:], is_causal=True).square().sum(), operands)
        torch.testing.assert_close(torch.autograd.grad(compiled(*operands), operands), wanted, atol=1e-4, rtol=1e-4)


def test_compiled_dropout_draws_anew() -> None:
    compiled = torch.compile(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, dropout_p=0.5), backend="aot_eager", fullgraph=True
    )
    operands = tuple(one.detach() for one in qkv())
    assert not compiled(*operands).equal(compiled(*operands))


def test_autocast_casts() -> None:
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(NoKernelError, match=r"dtype_q is bf16"):
        scaled_dot_product_attention(*qkv())


def test_refusals() -> None:
    q, k, v = qkv()
    with pytest.raises(ArrayError, match=r"both is_causal and mask are given"):
        scaled_dot_product_attention(q, k, v, is_causal=True, mask="top_left")
    with pytest.raises(ArrayError, match=r"window is \(3, 0\) without a mask; pass mask="):
        scaled_dot_product_attention(q, k, v, window=(3, 0))
    with pytest.raises(ArrayError, match=r"seed is torch.float32 \(2,\) on cpu; allowed: torch.int64"):
        scaled_dot_product_attention(q, k, v, dropout_p=0.5, seed=torch.zeros(2))
    with pytest.raises(ArrayError, match=r"alibi_slopes requires grad"):
        scaled_dot_product_attention(q, k, v, alibi_slopes=some(4))
    output = scaled_dot_product_attention(q, k, v)
    (first,) = torch.autograd.grad(output.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"no second derivative"):
        first.sum().backward()
