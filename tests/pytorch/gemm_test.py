"""Results and gradients of ``kernelwright.torch`` by real CPU kernels, against float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from kernelwright.torch import gemm, linear
from kernelwright.torch.testdata import references
from kernelwright.torch.testdata.references import Case, by_kernel

# Of a result; of fp32 two: torch may sum a row in more parts than a kernel, and be closer than twice allows.
ROUNDING = {torch.float32: 2.0**-22, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
SIZES = [(64, 48, 96), (5, 131, 33), (1, 64, 257), (200, 1, 16)]


def rows(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype).requires_grad_()


def columns(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape[:-2], shape[-1], shape[-2]).to(dtype).mT.requires_grad_()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("make_a", [rows, columns])
@pytest.mark.parametrize("make_b", [rows, columns])
@pytest.mark.parametrize("m, n, k", SIZES)
def test_products(dtype: torch.dtype, make_a: Any, make_b: Any, m: int, n: int, k: int) -> None:
    case = Case(make_a(m, k, dtype=dtype), make_b(k, n, dtype=dtype), alpha=0.5)
    references.check(case, by_kernel, ROUNDING[dtype])


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
@pytest.mark.parametrize("shape", [(48,), (64, 48)])
def test_a_bias_and_an_activation(activation: str, shape: tuple[int, ...]) -> None:
    references.check(Case(rows(64, 96), columns(96, 48), [rows(*shape)], activation=activation), by_kernel)


def test_a_bias_and_an_activation_in_16_bits() -> None:
    a, b, bias = rows(64, 96, dtype=torch.bfloat16), columns(96, 48, dtype=torch.bfloat16), torch.randn(48)
    case = Case(a, b, [bias.bfloat16().requires_grad_()], activation="relu")
    references.check(case, by_kernel, ROUNDING[torch.bfloat16])


def test_a_factor() -> None:
    case = Case(rows(64, 96), columns(96, 48), [rows(64, 48)], "multiply")
    references.check(case, by_kernel)
    references.check(replace(case, ds=[rows(48)], alpha=-2.0), by_kernel)


def test_batches() -> None:
    references.check(Case(rows(3, 64, 96), columns(3, 96, 48)), by_kernel)
    references.check(Case(rows(3, 64, 96), columns(1, 96, 48)), by_kernel)  # one B for all
    references.check(Case(rows(64, 96), columns(3, 96, 48)), by_kernel)  # one A for all
    references.check(Case(rows(3, 64, 96), columns(96, 48)), by_kernel)


def test_linear_is_a_layer() -> None:
    x, weight, bias = rows(2, 5, 96), rows(48, 96), rows(48)
    operands = [x, weight, bias]
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(*operands))
    output = linear(x, weight, bias, activation="gelu")
    torch.testing.assert_close(output, expected)
    grads = torch.autograd.grad(output.square().sum(), operands)
    torch.testing.assert_close(grads, torch.autograd.grad(expected.square().sum(), operands), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_layers_have_the_same_gradients(dynamic: bool) -> None:
    def loss(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return linear(linear(x, weight, bias, activation="gelu"), last).square().mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for batch in (7, 12):
        operands = [rows(batch, 96), rows(48, 96), rows(48), rows(10, 48)]
        expected = torch.autograd.grad(loss(*operands), operands)
        torch.testing.assert_close(torch.autograd.grad(compiled(*operands), operands), expected)


def test_autocast_trains_in_bf16() -> None:
    x, weight = rows(64, 96), rows(48, 96)
    with torch.autocast("cpu", torch.bfloat16):
        actual = linear(x, weight)
        expected = torch.nn.functional.linear(x, weight)
    assert actual.dtype == torch.bfloat16
    actual, expected = torch.autograd.grad(actual.sum(), weight)[0], torch.autograd.grad(expected.sum(), weight)[0]
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-1)


def test_threads_of_a_backward_pass_share_the_dispatcher() -> None:
    weight = rows(48, 96)
    results = [gemm(rows(64, 96), weight.t()) for _ in range(8)]
    total = torch.stack([result.sum() for result in results]).sum()
    assert torch.isfinite(torch.autograd.grad(total, weight)[0]).all()
