"""Derivatives of operators within transforms of functions. Kernels are mocks."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.torch import TransformError, gemm, linear
from kernelwright.torch.operator import batching
from torch import func

pytestmark = pytest.mark.usefixtures("mocks_in_use")


A, B, D = torch.randn(5, 7), torch.randn(7, 6), torch.randn(6)


def ours(a: Any, b: Any, d: Any) -> Any:
    return gemm(a, b, ds=[d], activation="relu").sin().sum()


def theirs(a: Any, b: Any, d: Any) -> Any:
    return torch.relu(a @ b + d).sin().sum()


ALL = (0, 1, 2)
TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: func.grad(f, ALL)(A, B, D),
    "grad_and_value": lambda f: func.grad_and_value(f, ALL)(A, B, D),
    "vjp": lambda f: func.vjp(f, A, B, D)[1](torch.tensor(2.0)),
    "grad of grad": lambda f: func.grad(lambda *at: func.grad(f, 1)(*at).square().sum(), ALL)(A, B, D),
    "jacrev": lambda f: func.jacrev(f, ALL)(A, B, D),
    "jacrev of grad": lambda f: func.jacrev(func.grad(f, 0), 0)(A, B, D),
    "gradients of each sample": lambda f: func.vmap(func.grad(f, 0), (0, None, None))(torch.randn(3, 5, 7), B, D),
    "within no_grad": lambda f: func.grad(lambda a: f(a, B, D) + _constant(f, a))(A),
    "functional_call": lambda f: func.grad(lambda w: func.functional_call(_Layer(f), {"b": w}, (A,)))(B),
}  # fmt: skip


def _constant(f: Any, a: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return f(a, B, D)


class _Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f, self.b = f, torch.nn.Parameter(torch.zeros_like(B))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return self.f(a, self.b, D)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_give_the_derivatives_of_torch(name: str) -> None:
    torch.manual_seed(1)
    expected = TRANSFORMS[name](theirs)
    torch.manual_seed(1)
    torch.testing.assert_close(TRANSFORMS[name](ours), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["grad", "vjp", "grad of grad", "within no_grad"])
def test_compiled_transforms_are_one_graph(name: str) -> None:
    compiled = torch.compile(lambda: TRANSFORMS[name](ours), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(), TRANSFORMS[name](theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [
    (0, None, None), (1, None, None), (None, None, 0), (0, None, 0), (2, None, 1), (None, 0, None), (0, 2, None),
])  # fmt: skip
def test_batches_of_vmap(dims: tuple[int | None, ...]) -> None:
    operands = [torch.randn(one.shape) if dim is None else torch.stack([one, -one, 2 * one], dim)
                for one, dim in zip((A, B, D), dims, strict=True)]  # fmt: skip
    if dims[1] is not None:  # the mock adds D tensors to single products
        run = [func.vmap(f, dims[:2])(*operands[:2]) for f in (gemm, torch.matmul)]
    else:
        layers = [lambda a, b, d: gemm(a, b, ds=[d], activation="relu"), lambda a, b, d: torch.relu(a @ b + d)]
        run = [func.vmap(f, dims)(*operands) for f in layers]
    torch.testing.assert_close(*run)


def test_batches_within_batches_and_of_batches() -> None:
    a, b = torch.randn(4, 3, 5, 7), torch.randn(4, 7, 6)
    torch.testing.assert_close(func.vmap(func.vmap(gemm, (0, None)))(a, b), a @ b[:, None])
    torch.testing.assert_close(func.vmap(gemm, (0, None))(a, b[0]), a @ b[0])
    torch.testing.assert_close(func.vmap(gemm)(a, b), a @ b[:, None])
    torch.testing.assert_close(func.vmap(linear, (0, None))(a, B.t()), a @ B)


def test_without_a_rule_vmap_says_what_to_do() -> None:
    rule = batching(torch.ops.kernelwright.gemm.default, None)
    with pytest.raises(TransformError, match=r"kernelwright::.* has no rule for torch\.vmap; .*; pass the whole batch"):
        rule(None, (0, None), torch.randn(2, 8, 16), B)


def test_autograd_records_what_requires_grad_alone() -> None:
    a, b = A.clone().requires_grad_(), B.clone()
    assert gemm(a, b).grad_fn.name() == "kernelwright_gemmBackward" and gemm(a.detach(), b).grad_fn is None
    with torch.no_grad():
        assert gemm(a, b).grad_fn is None
    assert torch.autograd.grad(gemm(a, b, ds=[D], activation="relu").sum(), a)[0].shape == a.shape
