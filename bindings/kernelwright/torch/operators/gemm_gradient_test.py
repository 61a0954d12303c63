"""Gradients of products whose kernels are mocks: layouts, D tensors, what no kernel serves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import torch
from kernelwright.dispatch import ArrayError, Dispatcher, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.torch import gemm, use
from kernelwright.torch.testdata import references
from kernelwright.torch.testdata.references import Case, by_kernel

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def columns(*shape: int) -> torch.Tensor:
    return torch.randn(*shape[:-2], shape[-1], shape[-2]).mT.requires_grad_()


@pytest.mark.parametrize("make_a", [rows, columns])
@pytest.mark.parametrize("make_b", [rows, columns])
@pytest.mark.parametrize("m, n, k", [(5, 6, 7), (1, 6, 7), (5, 1, 7), (5, 6, 1), (0, 6, 7), (5, 6, 0)])
def test_layouts(make_a: Any, make_b: Any, m: int, n: int, k: int) -> None:
    references.check(Case(make_a(m, k), make_b(k, n), alpha=-0.5), by_kernel)


@pytest.mark.parametrize("make", [rows, columns])
def test_gradients_lie_as_their_operands(make: Any) -> None:
    a, b = make(5, 7), make(7, 6)
    for operand, grad in zip((a, b), torch.autograd.grad(gemm(a, b).sum(), [a, b]), strict=True):
        assert grad.stride() == operand.stride()


@pytest.mark.parametrize("bias", [(6,), (1, 6), (5, 6)])
def test_a_sum_with_a_d_tensor(bias: tuple[int, ...]) -> None:
    references.check(Case(rows(5, 7), rows(7, 6), [rows(*bias)], activation="relu"), by_kernel)


@pytest.mark.parametrize("shapes", [((5, 6), (5, 6)), ((6,), (5, 6)), ((1, 6), (6,))])
def test_a_product_with_d_tensors(shapes: tuple[tuple[int, ...], ...]) -> None:
    ds = [rows(*shape) for shape in shapes]
    case = Case(rows(5, 7), rows(7, 6), ds, "multiply", alpha=3.0)
    references.check(case, by_kernel)
    references.check(replace(case, ds=[ds[0], ds[1].detach()]), by_kernel)


def test_a_batch_with_one_b() -> None:
    case = Case(rows(3, 5, 7), rows(7, 6), [rows(6)], activation="relu")
    references.check(case, by_kernel)
    references.check(replace(case, ds=[rows(3, 5, 6)]), by_kernel)


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)])
@pytest.mark.parametrize("d_op, activation, count", [("add", "relu", 1), ("multiply", "none", 2)])
def test_only_what_is_asked_for(wanted: tuple[bool, ...], d_op: Any, activation: Any, count: int) -> None:
    a, b, *ds = (rows(*shape).detach() for shape in ((5, 7), (7, 6), *[(5, 6)] * count))
    for tensor, grad in zip((a, b, ds[0]), wanted, strict=True):
        tensor.requires_grad_(grad)
    references.check(Case(a, b, ds, d_op, activation), by_kernel)


def test_second_derivatives() -> None:
    a, b, d0, d1 = rows(5, 7), rows(7, 6), rows(5, 6), rows(6)

    def penalty(product: Any, *operands: Any) -> Any:
        result = product(Case(operands[0], operands[1], operands[2:], "multiply"))
        grads = torch.autograd.grad(result.square().sum(), operands, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in grads), operands)

    derivatives = penalty(by_kernel, a, b, d0, d1)
    wide = [operand.detach().double().requires_grad_() for operand in (a, b, d0, d1)]
    for one, exact in zip(derivatives, penalty(references.by_torch, *wide), strict=True):
        torch.testing.assert_close(one.double(), exact, rtol=1e-4, atol=1e-3)


def test_gradients_add_up_over_uses() -> None:
    a, b = rows(5, 5), rows(5, 5)
    gradients = torch.autograd.grad(gemm(gemm(a, b), b).sum(), [a, b])
    torch.testing.assert_close(gradients, torch.autograd.grad((a @ b @ b).sum(), [a, b]))


def test_a_version_that_is_gone_is_noticed() -> None:
    a, b = rows(5, 7), rows(7, 6)
    product = gemm(a, b)
    with torch.no_grad():
        b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_products_that_no_kernel_serves_are_refused() -> None:
    a, b = rows(3, 5, 7), rows(3, 7, 6)
    product = gemm(a, b)
    with pytest.raises(NoKernelError, match=r"gemm needs another product, for a: none of .* rcr 3\*5x7x6"):
        product.sum().backward()
    with pytest.raises(NoKernelError, match=r"needs another product, for b: none of .* crr 3\*7x6x5"):
        gemm(a.detach(), b).sum().backward()


def test_operands_of_8_bits_have_no_gradient(tmp_path: Path) -> None:
    use(Dispatcher(mocks.write_library(tmp_path, "MOCK_NARROW=KW_FP8")), "narrow")
    a, b = torch.zeros(5, 7, dtype=torch.float8_e4m3fn), torch.zeros(7, 6, dtype=torch.float8_e4m3fn)
    assert gemm(a, b, dispatcher="narrow").dtype == torch.float16
    for name, operands in (("a", (a.clone().requires_grad_(), b)), ("b", (a, b.clone().requires_grad_()))):
        with pytest.raises(ArrayError, match=rf"{name} requires grad and is torch.float8_e4m3fn; .*{name}\.detach\(\)"):
            gemm(*operands, dispatcher="narrow")
        with torch.no_grad():
            gemm(*operands, dispatcher="narrow")
