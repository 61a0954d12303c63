"""Gradients of the activations that kernels apply, computed by torch's own elementwise operators.

The derivatives of relu, sigmoid and tanh follow from their results. The others need their argument, which a fused
kernel does not write: the operator recomputes it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep

_aten = torch.ops.aten


def _silu(grad: torch.Tensor, argument: torch.Tensor) -> torch.Tensor:
    """torch's own operator for this gradient has no derivative."""
    share = torch.sigmoid(argument)
    return grad * share * (1 + argument * (1 - share))


_FROM_RESULT: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "relu": lambda grad, result: _aten.threshold_backward(grad, result, 0),
    "sigmoid": _aten.sigmoid_backward,
    "tanh": _aten.tanh_backward,
}
_FROM_ARGUMENT: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "gelu": lambda grad, argument: _aten.gelu_backward(grad, argument, approximate="none"),
    "fast_gelu": lambda grad, argument: _aten.gelu_backward(grad, argument, approximate="tanh"),
    "silu": _silu,
}


_FORWARD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "fast_gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
NAMES = frozenset(_FORWARD)
"""The activations that kernels apply."""


def apply(activation: str | None, argument: torch.Tensor) -> torch.Tensor:
    """Apply the activation by torch's own operator; None applies none."""
    return argument if activation in (None, "none") else _FORWARD[activation](argument)


def needs_result(activation: str) -> bool:
    """Whether the derivative follows from the result."""
    return activation in _FROM_RESULT


def needs_argument(activation: str) -> bool:
    """Whether the derivative needs the activation's argument."""
    return activation in _FROM_ARGUMENT


def gradient(activation: str, grad: torch.Tensor, result: torch.Tensor, argument: torch.Tensor) -> torch.Tensor:
    """The gradient of the activation's argument; reads only the one of ``result`` and ``argument`` that it needs."""
    if activation in _FROM_RESULT:
        return _FROM_RESULT[activation](grad, result)
    return _FROM_ARGUMENT[activation](grad, argument) if activation in _FROM_ARGUMENT else grad
