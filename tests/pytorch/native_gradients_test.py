"""Gradients of products, convolutions and attention that the native road computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from kernelwright.torch import conv2d, gemm, linear, reset_report
from kernelwright.torch.road import ROAD
from pytorch.native_cases import BASIC, CASES, KEEPS_RESULT, Case, close, lenient, native

LAYERS = {
    "linear": Case(
        "gemm", lambda x, w, b: linear(x, w, b, activation="relu"),
        lambda x, w, b: torch.relu(functional.linear(x, w, b)), ((5, 64), (48, 64), (48,)),
    ),
    "linear of rows": Case("gemm", linear, functional.linear, ((2, 3, 64), (48, 64))),
}  # fmt: skip


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    reset_report()
    yield


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    case = CASES[name]
    for at in (*range(len(case.shapes)), None):
        given = case.operands()
        for number, one in enumerate(given):
            one.requires_grad_(at in (number, None))
        case.ours(*given)  # is learned
        before = native(case.operator)
        result = case.ours(*given)
        assert native(case.operator) == before + 1 and result.requires_grad
        if not KEEPS_RESULT.search(name):
            result.add_(1.0)  # no view of a function's input
        factor = torch.randn(result.shape)
        required = [one for one in given if one.requires_grad]
        grads = torch.autograd.grad(result, required, factor)
        wanted = torch.autograd.grad(case.torchs(*given), required, factor)
        for one, other in zip(grads, wanted, strict=True):
            close(one, other)


@pytest.mark.parametrize(
    "name",
    ["gemm", "gemm with a bias", "gemm of rows", "conv2d", "conv2d of one image", "conv3d", "attention",
     "causal attention", "attention of shared heads", "attention of one sequence", "attention of one query"],
)  # fmt: skip
def test_backward_passes_take_the_native_road(name: str) -> None:
    case = CASES[name]
    directions = {
        "gemm": ("gemm",), "conv": ("conv_backward_data", "conv_backward_weight"), "attention": ("attention_backward",),
    }[case.operator]  # fmt: skip
    factor = None
    for _ in range(3):
        given = case.operands(grad=True)
        before = [native(one) for one in directions]
        result = case.ours(*given)
        factor = torch.randn_like(result) if factor is None else factor
        grads = torch.autograd.grad(result, given, factor)
        for one, other in zip(grads, torch.autograd.grad(case.torchs(*given), given, factor), strict=True):
            close(one, other)
            assert one.shape == other.shape
    assert [native(one) - count for one, count in zip(directions, before, strict=True)] in ([3], [1, 1], [1])


@pytest.mark.parametrize("name", ["linear", "linear of rows", *CASES])
def test_checkpoints_may_compute_on_either_road(name: str) -> None:
    """They compare what was saved for the gradient: the first forward is on the Python road, the next one is not."""
    case = CASES.get(name) or LAYERS[name]
    for forget in (False, True):
        ROAD.forget()
        for _ in range(2):
            given = case.operands(grad=True)
            result = checkpoint(lambda *one: case.ours(*one) * 1.0, *given, use_reentrant=False)
            if forget:
                ROAD.forget()  # the next one is on the Python road again
            factor = torch.randn_like(result)
            grads = torch.autograd.grad(result, given, factor)
            for one, other in zip(grads, torch.autograd.grad(case.torchs(*given), given, factor), strict=True):
                close(one, other)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
@pytest.mark.parametrize("operator", ["gemm", "conv"])
def test_gradients_with_activations(operator: str, activation: str) -> None:
    torchs = getattr(functional, activation, torch.tanh)
    if operator == "gemm":
        case = Case(
            "gemm", lambda a, b, d: gemm(a, b, ds=[d], activation=activation), lambda a, b, d: torchs(a @ b + d),
            ((5, 64), (64, 48), (48,)),
        )  # fmt: skip
    else:
        case = Case(
            "conv", lambda x, w, b: conv2d(x, w, b, activation=activation),
            lambda x, w, b: torchs(functional.conv2d(x, w, b)), ((2, 8, 9, 7), (6, 8, 3, 3), (6,)),
        )  # fmt: skip
    with lenient():
        case.ours(*case.operands(grad=True))
        given = case.operands(grad=True)
        result = case.ours(*given)
        factor = torch.randn(result.shape)
        grads = torch.autograd.grad(result, given, factor)
    for one, other in zip(grads, torch.autograd.grad(case.torchs(*given), given, factor), strict=True):
        close(one, other)


@pytest.mark.parametrize(
    "name", ["gemm", "gemm with a residual and relu", "gemm of rows", "conv2d", "conv2d of one image"]
)
def test_second_derivatives(name: str) -> None:
    case = CASES[name]
    given = case.operands(grad=True)
    case.ours(*given)

    def penalty(run: Any) -> Any:
        (first,) = torch.autograd.grad((run(*given) ** 2).sum(), given[0], create_graph=True)
        return torch.autograd.grad((first**2).sum(), given[:2])

    for one, other in zip(penalty(case.ours), penalty(case.torchs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
    assert native(case.operator) >= 1


@pytest.mark.parametrize("name", BASIC)
def test_only_what_a_gradient_needs_is_saved(name: str) -> None:
    case = CASES[name]
    first, *rest = case.operands()
    first.requires_grad_()
    case.ours(first, *rest)
    saved: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one) or one, lambda one: one):
        case.ours(first, *rest)
    assert native(case.operator) == 1
    if case.operator != "attention":  # whose gradients need everything
        assert [one.data_ptr() for one in saved] == [rest[0].data_ptr()]
