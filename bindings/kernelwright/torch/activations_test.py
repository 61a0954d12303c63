from __future__ import annotations

import pytest

import torch
from kernelwright.problems.shared import Activation
from kernelwright.torch import activations
from kernelwright.torch.testdata import references


def test_every_activation_of_kernels_has_a_reference() -> None:
    assert set(references.ACTIVATIONS) == set(Activation.codes)


@pytest.mark.parametrize("name", Activation.codes)
def test_gradients_are_those_of_the_activation(name: str) -> None:
    argument = torch.linspace(-5, 5, 41, dtype=torch.float64, requires_grad=True)
    grad = torch.randn_like(argument)
    result = references.ACTIVATIONS[name](argument)
    (expected,) = torch.autograd.grad(result, argument, grad)
    given = argument if activations.needs_argument(name) else None
    torch.testing.assert_close(activations.gradient(name, grad, result if given is None else None, given), expected)
    assert not (activations.needs_argument(name) and activations.needs_result(name))


@pytest.mark.parametrize("name", ["gelu", "fast_gelu", "silu", "sigmoid", "tanh"])
def test_gradients_are_differentiable(name: str) -> None:
    def slope(argument: torch.Tensor) -> torch.Tensor:
        result = references.ACTIVATIONS[name](argument)
        return activations.gradient(name, torch.ones_like(argument), result, argument)

    argument = torch.linspace(-2, 2, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(slope, argument)
