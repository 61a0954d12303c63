"""RMS norm and layer norm as operators of torch against torch's own, by real CPU kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import ArrayError, NoKernelError
from kernelwright.torch import layer_norm, rms_norm
from kernelwright.torch.operators.norm import ADD_NORM, NORM
from kernelwright.torch.operators.norm_gradient import OPERATOR

BOUNDS = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def close(actual: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> None:
    assert actual.shape == exact.shape
    off = (actual.double() - exact.double()).abs().max().item() if actual.numel() else 0.0
    assert off <= BOUNDS[dtype] * max(exact.abs().max().item() if exact.numel() else 0.0, 1.0)


def norms(kind: str, *given: Any, **options: Any) -> tuple[Any, Any]:
    """Ours and torch's, of a sum in torch's case."""
    x, shape, weight, bias = given
    residual = options.get("residual")
    total = x if residual is None else x + residual
    if kind == "rms":
        return rms_norm(x, shape, weight, 1e-5, **options), functional.rms_norm(total, shape, weight, 1e-5)
    return layer_norm(x, shape, weight, bias, **options), functional.layer_norm(total, shape, weight, bias)


@pytest.mark.parametrize("kind", ["rms", "layer"])
@pytest.mark.parametrize("dtype", list(BOUNDS))
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("shape", [(7,), (64,), (3, 20)])
def test_norms_and_gradients_are_torchs(kind: str, dtype: torch.dtype, residual: bool, shape: tuple[int, ...]) -> None:
    x, other = (torch.randn(2, 5, *shape, dtype=dtype, requires_grad=True) for _ in range(2))
    weight, bias = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(2))
    options = {"residual": other} if residual else {}
    normed, exact = norms(kind, x, shape, weight, bias, **options)
    wanted = [x, weight, *([bias] if kind == "layer" else []), *([other] if residual else [])]
    dy = torch.randn_like(exact)
    if residual:
        normed, total = normed
        assert torch.equal(total, x + other)
        ours = torch.autograd.grad([normed, total], wanted, [dy, dy])
        torchs = torch.autograd.grad([exact, x + other], wanted, [dy, dy])
    else:
        ours, torchs = (torch.autograd.grad(one, wanted, dy) for one in (normed, exact))
    close(normed, exact, dtype)
    for one, another in zip(ours, torchs, strict=True):
        assert one.dtype == another.dtype
        close(one, another, dtype)


def test_weights_may_be_wider_and_absent() -> None:
    x = torch.randn(4, 33, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(33, requires_grad=True)
    normed = rms_norm(x, (33,), weight)
    assert normed.dtype == torch.bfloat16
    close(normed, functional.rms_norm(x.float(), (33,), weight, torch.finfo(torch.bfloat16).eps), torch.bfloat16)
    of_x, of_weight = torch.autograd.grad(normed.sum(), [x, weight])
    assert (of_x.dtype, of_weight.dtype) == (torch.bfloat16, torch.float32)
    plain = torch.randn(3, 40)
    close(rms_norm(plain, (40,)), functional.rms_norm(plain, (40,)), torch.float32)
    close(layer_norm(plain, (40,), bias=plain[0]), functional.layer_norm(plain, (40,), None, plain[0]), torch.float32)


MEMORY: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x[:, :, 3:],
    lambda x: x.transpose(0, 1),
    lambda x: x.mT.contiguous().mT,
    lambda x: x[:1].expand(4, 6, 40),
    lambda x: x[:0],
]


@pytest.mark.parametrize("change", MEMORY)
def test_any_memory(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = change(torch.randn(4, 6, 40))
    shape = x.shape[-1:]
    close(layer_norm(x, shape), functional.layer_norm(x, shape), torch.float32)


def test_operators_keep_torchs_contract() -> None:
    x, other, weight = torch.randn(3, 20), torch.randn(3, 20), torch.randn(20)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    leaf = x.clone().requires_grad_()
    torch.library.opcheck(NORM, (leaf, weight, weight, "layer", 1e-5, ""), test_utils=tests)
    torch.library.opcheck(ADD_NORM, (leaf, other, weight, None, "rms", 1e-5, ""), test_utils=tests)
    torch.library.opcheck(OPERATOR, (x, other, weight, None, True, "layer", 1e-5, ""), test_utils=tests)


def test_compiled_models_and_their_gradients() -> None:
    x, weight = torch.randn(6, 32, requires_grad=True), torch.randn(32, requires_grad=True)

    def block(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y, total = rms_norm(x * 2, (32,), weight, residual=x)
        return (y * total).sum()

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (6, 9):
        given = torch.randn(rows, 32, requires_grad=True)
        ours, plain = (torch.autograd.grad(one(given, weight), [given, weight]) for one in (compiled, block))
        assert all(torch.allclose(*pair, rtol=1e-5, atol=1e-5) for pair in zip(ours, plain, strict=True))
    assert x.grad is None


def test_second_derivatives() -> None:
    x, weight = torch.randn(3, 16, dtype=torch.float32, requires_grad=True), torch.randn(16, requires_grad=True)
    second_order = []
    for norm in (layer_norm, functional.layer_norm):
        (first,) = torch.autograd.grad(norm(x, (16,), weight).pow(3).sum(), x, create_graph=True)
        second_order.append(torch.autograd.grad(first.square().sum(), [x, weight]))
    for one, another in zip(*second_order, strict=True):
        assert torch.allclose(one, another, rtol=1e-4, atol=1e-4 * another.abs().max().item())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalized_shape": (5,)}, r"normalized_shape is \(5,\) and x has shape"),
        ({"weight": torch.ones(5)}, r"weight has shape \(5,\); allowed: \(8,\)"),
        ({"residual": torch.ones(3, 8)}, "they must be equal"),
        ({"x": [1.0]}, "x is a builtins.list"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        rms_norm(**{"x": torch.ones(2, 8), "normalized_shape": (8,), **change})


def test_what_only_torch_computes_is_told_apart() -> None:
    with pytest.raises(NoKernelError, match="weight and bias are served by no kernel"):
        layer_norm(torch.ones(2, 8), (8,), torch.ones(8, dtype=torch.float16))
    with torch.autocast("cpu"), pytest.raises(NoKernelError, match="under autocast"):
        rms_norm(torch.ones(2, 8), (8,))
