"""Code that knows nothing of kernels, within ``intercept``. Mocks are fp32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torch
from kernelwright.dispatch import NoKernelError
from kernelwright.torch import intercept, report, strict
from torch import nn
from torch.nn import functional

FALLS_BACK = True

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def some(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v, **options)


CASES: dict[str, tuple[list[torch.Tensor], Callable[..., torch.Tensor], str | None]] = {
    "mm": ([some(5, 7), some(7, 6)], torch.mm, "gemm"),
    "matmul": ([some(2, 5, 7), some(7, 6)], torch.matmul, "gemm"),
    "linear": ([some(2, 5, 7), some(6, 7), some(6)], functional.linear, "gemm"),
    "einsum": ([some(2, 5, 7), some(6, 7)], lambda x, w: torch.einsum("bik,jk->bij", x, w), "gemm"),
    "bmm": ([some(3, 5, 7), some(3, 7, 6)], torch.bmm, "gemm"),
    "addmm": ([some(5, 1), some(5, 7), some(7, 6)], lambda d, a, b: torch.addmm(d, a, b, alpha=0.5), "gemm"),
    "baddbmm": ([some(3, 5, 6), some(3, 5, 7), some(3, 7, 6)], torch.baddbmm, "gemm"),
    "beta": ([some(5, 6), some(5, 7), some(7, 6)], lambda d, a, b: torch.addmm(d, a, b, beta=2), "gemm"),
    "conv1d": ([some(2, 4, 9), some(6, 2, 3), some(6)], lambda x, w, b: functional.conv1d(x, w, b, groups=2), "conv"),
    "conv2d": ([some(2, 4, 9, 8), some(6, 4, 3, 3), some(6)], lambda x, w, b: functional.conv2d(x, w, b, 2, 1), "conv"),
    "same": ([some(1, 2, 6, 5), some(3, 2, 2, 2)], lambda x, w: functional.conv2d(x, w, padding="same"), "conv"),
    "transposed": ([some(2, 4, 5, 5), some(4, 3, 2, 2)], functional.conv_transpose2d, ""),
    "attention": ([some(2, 3, 5, 8), some(2, 3, 7, 8), some(2, 3, 7, 8)], attend, "attention"),
    "causal": (
        [some(1, 2, 6, 8), some(1, 2, 6, 8), some(1, 2, 6, 8)],
        lambda q, k, v: attend(q, k, v, is_causal=True, scale=0.3), "attention",
    ),
    "mask": (
        [some(1, 2, 6, 8), some(1, 2, 6, 8), some(1, 2, 6, 8)],
        lambda q, k, v: attend(q, k, v, attn_mask=torch.arange(36.0).view(6, 6)), "attention",
    ),
    "integers": ([some(5, 7), some(7, 6)], lambda a, b: (a.long() @ b.long()) + (a @ b), "gemm"),
    "double": ([some(5, 7), some(7, 6)], lambda a, b: a.double() @ b.double(), ""),
    "sparse": ([some(5, 7), some(7, 6)], lambda a, b: a.to_sparse() @ b, None),
    "nothing": ([some(0, 7), some(7, 6)], torch.mm, ""),
}  # fmt: skip


def with_gradients(call: Callable[..., torch.Tensor], operands: list[torch.Tensor]) -> list[torch.Tensor]:
    result = call(*operands)
    return [result, *torch.autograd.grad(result.square().sum(), operands)]


@pytest.mark.parametrize("name", CASES)
def test_results_gradients_and_memory_are_torchs(name: str) -> None:
    operands, call, operator = CASES[name]
    expected = with_gradients(call, operands)
    with intercept():
        actual = with_gradients(call, operands)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        assert one.dtype == other.dtype
        # Gradients of attention are where the operands are.
        assert one.stride() == other.stride() or (operator == "attention" and one is not actual[0])
    asked = {one.operator for one in report().operators}
    assert operator is None or (operator in asked if operator else not asked)


@pytest.mark.parametrize("name", ["linear", "matmul", "conv2d", "attention", "causal", "mask", "einsum", "same"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(name: str, mode: Any) -> None:
    operands, call, operator = CASES[name]
    with mode():
        expected = call(*(one.clone() for one in operands))
        with intercept():
            torch.testing.assert_close(call(*(one.clone() for one in operands)), expected, rtol=1e-4, atol=1e-4)
    assert {one.operator for one in report().operators} == {operator}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_and_what_no_kernel_serves(dtype: torch.dtype) -> None:
    x, w, b = (one.detach() for one in CASES["linear"][0])
    with torch.autocast("cpu", dtype):
        expected = functional.linear(x, w, b)
        for _ in range(2):
            with intercept():
                assert torch.equal(functional.linear(x, w, b), expected)
        with strict(), intercept(), pytest.raises(NoKernelError):
            functional.linear(x, w, b)
    assert [(one.ours, one.torchs) for one in report().operators] == [(0, 2)]


def test_whole_models_train_alike() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2)
    x = torch.randn(2, 5, 16)

    def step() -> list[torch.Tensor]:
        model.zero_grad()
        model(x).square().mean().backward()
        return [one.grad.clone() for one in model.parameters()]

    expected = step()
    with intercept():
        gradients = step()
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert {one.operator for one in report().operators} >= {"attention", "attention_backward", "gemm"}
