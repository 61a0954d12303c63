"""Neighbours in an ``nn.Sequential`` that one kernel computes: a layer, a batch norm at inference, an activation.

They are fused call by call, only if nothing observes the values between them: no module of a group has hooks, and a
batch norm is folded into the weights only if no gradient is recorded.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.torch.adoption.classes import inherited, is_adopted
from kernelwright.torch.adoption.layers import convolve
from kernelwright.torch.operators.gemm import linear_then
from torch import nn  # pants: no-infer-dep
from torch.nn.modules.module import _has_any_global_hook  # pants: no-infer-dep

_NORMS = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}
_PLAIN = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Sigmoid: "sigmoid", nn.Tanh: "tanh"}


class Group(NamedTuple):
    """Neighbouring modules; ``norm`` may be None and ``activation`` ``"none"``; ``members`` is their number."""

    layer: Any
    norm: Any
    activation: str
    members: int


def activation_of(module: nn.Module) -> str | None:
    """The name of the activation that a torch module applies and nothing else; None for any other module."""
    cls = type(module)
    if cls is nn.GELU:
        return "gelu" if module.approximate == "none" else "fast_gelu"
    return _PLAIN.get(cls)


def hooked(module: nn.Module) -> bool:
    """Whether hooks observe the module's inputs or results."""
    own = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(own) or _has_any_global_hook()


def group_at(modules: list[nn.Module], first: int) -> Group | None:
    """The neighbours from ``first`` on that form one kernel; None if the module stands alone."""
    layer = modules[first]
    cls = inherited(layer)
    own = vars(cls).get("_kernelwright_inherited")
    norm_class = _NORMS.get(own) if own is not None else None
    if norm_class is None and own is not nn.Linear:
        return None
    at = first + 1
    norm = None
    if norm_class is not None and at < len(modules) and type(modules[at]) is norm_class:
        norm, at = modules[at], at + 1
        if norm.training or norm.running_mean is None or hooked(norm) or _recorded(layer, norm):
            return None
    activation = activation_of(modules[at]) if at < len(modules) and not hooked(modules[at]) else None
    at += activation is not None
    if at == first + 1 or hooked(layer):
        return None
    return Group(layer, norm, activation or "none", at - first)


def _recorded(layer: nn.Module, norm: nn.Module) -> bool:
    if not torch.is_grad_enabled():
        return False
    return any(one.requires_grad for one in (*layer.parameters(), *norm.parameters()))


def run(group: Group, x: torch.Tensor) -> torch.Tensor:
    """Compute what the neighbours compute in sequence."""
    layer, norm, activation, _ = group
    if isinstance(layer, nn.Linear):
        return linear_then(x, layer.weight, layer.bias, activation)
    weight, bias = (layer.weight, layer.bias) if norm is None else folded(layer, norm)
    return convolve(layer, x, weight, bias, activation=activation)


_FOLDED: weakref.WeakKeyDictionary[nn.Module, Any] = weakref.WeakKeyDictionary()  # by batch norm


def folded(layer: Any, norm: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and bias of a convolution with the batch norm after it folded in; recomputed when a tensor has changed.

    Computed in fp32 and rounded once to the dtype of the weights.
    """
    sources = [layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var]
    if torch.compiler.is_compiling() or any(one is not None and one.is_inference() for one in sources):
        return _fold(norm.eps, *sources)
    state = [norm.eps, *(None if one is None else (id(one), one.data_ptr(), one._version) for one in sources)]
    kept = _FOLDED.get(norm)
    if kept is None or kept[0] != state:
        with torch.inference_mode(False), torch.no_grad():
            kept = _FOLDED[norm] = state, _fold(norm.eps, *sources)
    weight_and_bias: tuple[torch.Tensor, torch.Tensor] = kept[1]
    return weight_and_bias


def _fold(
    eps: float, weight: torch.Tensor, bias: torch.Tensor | None, gamma: torch.Tensor | None, beta: torch.Tensor | None,
    mean: torch.Tensor, variance: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    factor = torch.rsqrt(variance.float() + eps)
    factor = factor if gamma is None else factor * gamma.float()
    shift = (0 if bias is None else bias.float()) - mean.float()
    shift = shift * factor if beta is None else shift * factor + beta.float()
    wide = weight.float() * factor.view(-1, *[1] * (weight.dim() - 1))
    return wide.to(weight.dtype), shift.to(weight.dtype)


def sequential_forward(sequence: Any, _: type, input: Any) -> Any:
    """The ``forward`` of ``nn.Sequential``."""
    modules = list(sequence)
    at = 0
    while at < len(modules):
        group = group_at(modules, at)
        if group is None:
            input, at = modules[at](input), at + 1
        else:
            input, at = run(group, input), at + group.members
    return input


def forget_folded(norm: nn.Module) -> None:
    """Drop what :func:`folded` has cached."""
    _FOLDED.pop(norm, None)


def may_fuse(sequence: nn.Module) -> bool:
    """Whether there are neighbours that one kernel may compute."""
    if type(sequence).forward is not nn.Sequential.forward or "forward" in vars(sequence):
        return False
    following = {*_PLAIN, nn.GELU, *_NORMS.values()}
    pairs = itertools.pairwise(sequence.children())
    return any(is_adopted(first) and type(second) in following for first, second in pairs)
