"""Attention by torch's operators against that of kernels (mocks), with every feature: either may compute a gradient."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.dispatch import NoKernelError
from kernelwright.torch import report, scaled_dot_product_attention, varlen_attn
from kernelwright.torch.fallback import attentions, varlen
from kernelwright.torch.operators.attention import OPERATOR
from kernelwright.torch.operators.attention_gradient import OPERATOR as GRADIENT
from kernelwright.torch.operators.attention_varlen import GRADIENT as VARLEN_GRADIENT
from kernelwright.torch.operators.attention_varlen import OPERATOR as VARLEN

FALLS_BACK = True
FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"mask": "top_left", "left": -1, "right": 0},
    "window": {"mask": "bottom_right", "left": 3, "right": 1},
    "bias": {"bias": (1, 4, 40, 70)},
    "bias of keys": {"bias": (2, 1, 1, 70)},
    "slopes": {"slopes": (4,)},
    "slopes, causal": {"slopes": (2, 4), "mask": "bottom_right", "left": -1, "right": 0},
    "slopes from the left": {"slopes": (4,), "mask": "top_left", "left": -1, "right": 0},
    "sinks": {"sinks": (4,)},
    "cap": {"soft_cap": 2.0, "scale": 0.7},
    "dropout": {"dropout_p": 0.3},
    "nearly all is dropped": {"dropout_p": 0.9, "mask": "top_left", "left": -1, "right": 0},
}

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def arguments(features: dict[str, Any]) -> list[Any]:
    q, k, v = torch.randn(2, 4, 40, 8), torch.randn(2, 2, 70, 8), torch.randn(2, 2, 70, 6)
    bias, slopes, sinks = (
        torch.rand(features[name]) if name in features else None for name in ("bias", "slopes", "sinks")
    )
    seed = torch.tensor([2**40 + 7, 2**33 + 5]) if "dropout_p" in features else None
    rules = (
        features.get("mask", "none"), features.get("left", -1), features.get("right", -1), features.get("scale"),
        features.get("soft_cap", 0.0), features.get("dropout_p", 0.0),
    )  # fmt: skip
    return [q, k, v, bias, slopes, sinks, seed, *rules]


@pytest.mark.parametrize("steps", ["in one step", "some queries at a time"])
@pytest.mark.parametrize("name", FEATURES)
def test_both_compute_the_same(name: str, steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if steps != "in one step":
        monkeypatch.setattr(attentions, "_SCORES", 2 * 4 * 70 * 13)
    given = arguments(FEATURES[name])
    out, lse = OPERATOR(*given, True)
    for one, other in zip(attentions.forward(*given, True), (out, lse), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    short, nothing = attentions.forward(*given, False)
    torch.testing.assert_close(short, out, rtol=1e-4, atol=1e-5)
    assert nothing.numel() == 0
    q, k, v, bias, slopes, _, seed, *rules = given
    with_dbias = bias is not None
    backward = (q, k, v, out, torch.randn_like(out), lse, bias, slopes, seed, *rules, with_dbias)
    try:
        expected = GRADIENT(*backward)
    except NoKernelError:
        pytest.fail("mocks have gradients of all features")
    for one, other in zip(attentions.backward(*backward), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert all(one.torchs == 0 for one in report().operators)


@pytest.mark.parametrize("name", ["plain", "causal", "window", "slopes", "slopes, causal", "sinks", "cap"])
def test_requests_of_different_lengths(name: str) -> None:
    *_, slopes, sinks, _, mask, left, right, scale, cap, _ = arguments(FEATURES[name])
    q, k, v = torch.randn(60, 4, 8), torch.randn(90, 2, 8), torch.randn(90, 2, 6)
    cu_q, cu_k = (torch.tensor(one, dtype=torch.int32) for one in ([0, 20, 60], [0, 25, 90]))
    used = torch.tensor([25, 60], dtype=torch.int32) if name == "window" else None
    slopes = slopes if slopes is None or slopes.dim() == 1 else slopes[:, :4]
    options = (mask, left, right, scale, cap, 0.0)
    given = (q, k, v, cu_q, cu_k, 40, 65, used, slopes, sinks, None, *options, True)
    out, lse = VARLEN(*given)
    for one, other in zip(varlen.forward(*given), (out, lse), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    backward = (q, k, v, out, torch.randn_like(out), lse, cu_q, cu_k, 40, 65, used, slopes, None, *options)
    for one, other in zip(varlen.backward(*backward), VARLEN_GRADIENT(*backward), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_features_that_torchs_function_lacks_fall_back_with_gradients() -> None:
    q, k, v = (torch.randn(2, 3, 6, 8, requires_grad=True) for _ in range(3))
    sinks = torch.randn(3, requires_grad=True)
    options: dict[str, Any] = {"mask": "bottom_right", "window": (3, 0), "soft_cap": 1.5}

    def results(dtype: torch.dtype) -> list[torch.Tensor]:
        operands = [one.detach().to(dtype).requires_grad_() for one in (q, k, v)]
        out = scaled_dot_product_attention(*operands, sinks=sinks, **options)
        return [out, *torch.autograd.grad(out.float().square().sum(), [*operands, sinks])]

    for one, other in zip(results(torch.bfloat16), results(torch.float32), strict=True):
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)
    assert {one.operator: (one.ours, one.torchs) for one in report().operators} == {
        "attention": (1, 1), "attention_backward": (1, 1),
    }  # fmt: skip


def test_dropout_falls_back_with_the_probabilities_of_kernels() -> None:
    operands = [torch.randn(1, 2, 33, 8) for _ in range(3)]
    options: dict[str, Any] = {"dropout_p": 0.5, "seed": torch.tensor([3, 4])}
    expected = scaled_dot_product_attention(*operands, **options)
    actual = scaled_dot_product_attention(*(one.bfloat16() for one in operands), **options)
    torch.testing.assert_close(actual.float(), expected, rtol=0.05, atol=0.05)


def test_varlen_falls_back() -> None:
    given = [torch.randn(9, 2, 8) for _ in range(3)]
    starts = torch.tensor([0, 4, 9], dtype=torch.int32)

    def results(dtype: torch.dtype) -> list[torch.Tensor]:
        operands = [one.to(dtype).requires_grad_() for one in given]
        q, k, v = operands
        out = varlen_attn(q, k, v, starts, starts, 5, 5, window_size=(-1, 0))
        return [out, *torch.autograd.grad(out.float().square().sum(), operands)]

    for one, other in zip(results(torch.bfloat16), results(torch.float32), strict=True):
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)
    with pytest.raises(NoKernelError):  # torch drops other probabilities
        q, k, v = (one.bfloat16() for one in given)
        varlen_attn(q, k, v, starts, starts, 5, 5, dropout_p=0.5)
