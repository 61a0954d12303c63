"""Attention under ``torch.vmap`` and ``torch.func``, against torch's own there or a loop. Kernels are mocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torch
from kernelwright.dispatch import KernelwrightError
from kernelwright.torch import scaled_dot_product_attention, varlen_attn
from torch.func import grad, jacrev, jvp, vmap

REFERENCE = torch.nn.functional.scaled_dot_product_attention
STARTS = torch.tensor([0, 2, 5], dtype=torch.int32)

pytestmark = pytest.mark.usefixtures("mocks_in_use")


Q, K, V = torch.randn(3, 2, 4, 5, 8), torch.randn(3, 2, 4, 7, 8), torch.randn(3, 2, 4, 7, 6)
MASK = torch.randn(3, 5, 7)
ALL = (0, 1, 2)


def along(dim: int) -> Callable[[Any], Any]:
    return lambda f: vmap(f, dim)(*(x.movedim(0, dim) for x in (Q, K, V)))


CASES: dict[str, Callable[[Any], Any]] = {
    **{f"dimension {dim}": along(dim) for dim in range(-1, 4)},
    "queries alone": lambda f: vmap(lambda x: f(x, K[0], V[0]))(Q),
    "keys alone": lambda f: vmap(lambda x: f(Q[0], x, V[0]))(K),
    "masks": lambda f: vmap(lambda x, mask: f(x, K[0], V[0], mask))(Q, MASK),
    "boolean masks": lambda f: vmap(lambda x, mask: f(x, K[0], V[0], mask))(Q, MASK > -1),
    "one mask": lambda f: vmap(lambda x: f(x, K[0], V[0], MASK[:2, None]))(Q),
    "three dimensions": lambda f: vmap(lambda x: f(x, K[0, 0], V[0, 0]))(Q[:, 0]),
    "shared heads": lambda f: vmap(lambda x: f(x, K[0][:, :2], V[0][:, :2], enable_gqa=True))(Q),
    "twice": lambda f: vmap(vmap(f))(Q, K, V),
    "gradients": lambda f: grad(lambda *x: f(*x).square().sum(), ALL)(Q[0], K[0], V[0]),
    "gradients of each": lambda f: vmap(grad(lambda *x: f(*x).square().sum(), ALL))(Q, K, V),
    "gradients of queries": lambda f: vmap(grad(lambda x: f(x, K[0], V[0]).square().sum()))(Q),
    "gradients of all": lambda f: grad(lambda *x: vmap(f)(*x).square().sum(), ALL)(Q, K, V),
    "gradients of masks": lambda f: vmap(grad(lambda m, x: f(x, K[0], V[0], m).square().sum(), (0, 1)))(MASK, Q),
    "jacobian": lambda f: jacrev(lambda x: f(x, K[0, 0], V[0, 0]))(Q[0, 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_torch_s_own(name: str) -> None:
    wanted = CASES[name](REFERENCE)
    torch.testing.assert_close(CASES[name](scaled_dot_product_attention), wanted, atol=1e-5, rtol=1e-4)


def test_autograd_sees_through() -> None:
    q = Q.clone().requires_grad_()

    def slope(f: Any) -> Any:
        return torch.autograd.grad(vmap(lambda x: f(x, K[0], V[0]))(q).square().sum(), q)

    actual, wanted = slope(scaled_dot_product_attention), slope(REFERENCE)
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-4)


SEED, EACH = torch.tensor([3, 4]), torch.randn(3, 4).abs()
FEATURES: dict[str, Callable[..., Any]] = {
    "dropout": lambda x, _: scaled_dot_product_attention(x, K[0], V[0], dropout_p=0.5, seed=SEED),
    "sinks": lambda x, own: scaled_dot_product_attention(x, K[0], V[0], sinks=own),
    "slopes": lambda x, own: scaled_dot_product_attention(x, K[0], V[0], alibi_slopes=own),
    "lse": lambda x, _: scaled_dot_product_attention(x, K[0], V[0], return_lse=True)[1],
    "lengths": lambda x, _: varlen_attn(*(x[0].transpose(0, 1),) * 3, STARTS, STARTS, 3, 3),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_are_those_of_a_loop(name: str) -> None:
    one = FEATURES[name]
    torch.testing.assert_close(vmap(one)(Q, EACH), torch.stack([one(*each) for each in zip(Q, EACH, strict=True)]))
    if name != "lse":
        slope = grad(lambda *x: one(*x).square().sum())
        wanted = torch.stack([slope(*each) for each in zip(Q, EACH, strict=True)])
        torch.testing.assert_close(vmap(slope)(Q, EACH), wanted, atol=1e-5, rtol=1e-5)


def test_dropout_draws_for_each_where_randomness_differs() -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, K[0], V[0], dropout_p=0.5)

    outputs = vmap(one, randomness="different")(Q[:1].expand(3, -1, -1, -1, -1))
    assert not outputs[0].allclose(outputs[1])
    outputs = vmap(one, randomness="same")(Q[:1].expand(3, -1, -1, -1, -1))
    torch.testing.assert_close(outputs[0], outputs[1])


def test_what_has_no_rule_is_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, K[0], V[0]).square().sum()

    with pytest.raises(KernelwrightError, match=r"no second derivative; .*; call torch\.nn\.functional"):
        grad(lambda x: grad(f)(x).sum())(Q[0])
    with pytest.raises(KernelwrightError, match=r"no forward-mode derivative .*; call torch\.func\.vjp"):
        jvp(f, (Q[0],), (Q[0],))
