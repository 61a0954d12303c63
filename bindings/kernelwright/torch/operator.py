"""Registers an operator with torch: schema, implementation, results without data, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import KernelwrightError
from kernelwright.dispatch.core.arena import Apart
from kernelwright.torch import gradients
from kernelwright.torch.fallback import decisions as fallback
from torch.autograd import forward_ad  # pants: no-infer-dep

# torch drops what was registered with a library that is no longer referenced.
_LIBRARY = torch.library.Library("kernelwright", "DEF")
_APART = Apart()
_DEVICES = ("CPU", "CUDA")  # builds of torch for ROCm call their devices CUDA too


class TransformError(KernelwrightError, NotImplementedError):
    """An operator has no rule for a function transform: forward-mode derivatives, or ``torch.vmap``."""


def register(
    schema: str,
    run: Callable[..., Any],
    torchs: Callable[..., Any],
    fake: Callable[..., Any],
    save: Callable[[Any, tuple[Any, ...], Any], None],
    backward: Callable[..., Any],
    batch: Callable[..., tuple[Any, Any]] | None = None,
) -> Any:
    """Register ``torch.ops.kernelwright.<name>.default`` and return it: callable, traceable and differentiable.

    :param schema: name, arguments and results in torch's syntax, without keyword-only arguments.
    :param run: computes results, in memory of its own, from tensors on a CPU or GPU.
    :param torchs: computes the same by torch's own operators if no kernel serves it; :func:`laid_out` helps.
    :param fake: allocates results of the same shapes, strides and dtypes, from tensors without data.
    :param save: keeps on ``ctx`` what ``backward`` needs; called with ``ctx``, the arguments and the result.
    :param backward: returns the gradients of all arguments, given ``ctx`` and those of the results, using traceable
        operators only.
    :param batch: the rule for ``torch.vmap``, as ``torch.library.register_vmap`` takes it, called with all arguments
        and a dimension, or None, for each of them. Without a rule, ``torch.vmap`` is refused.
    """
    name = schema.partition("(")[0]
    qualified = f"kernelwright::{name}"
    decisions = fallback.of(name)

    def kernels(*arguments: Any) -> Any:
        with _APART:
            return run(*arguments)

    def launch(*arguments: Any) -> Any:
        # torch would treat the tangents of operands without a forward formula as zeros.
        if forward_ad._current_level >= 0:
            raise TransformError(
                f"{qualified} has no forward-mode derivative (jvp, jacfwd, hessian); allowed: reverse mode; call "
                "torch.func.vjp or jacrev, or torch.autograd.functional.jvp, which differentiates in reverse twice"
            )
        return decisions.below(kernels, torchs, arguments)

    # Kernels are made for layouts: a compiler must pass the strides that it was shown.
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
    for device in _DEVICES:
        _LIBRARY.impl(name, launch, device)
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    gradients.register(_LIBRARY, name, save, backward)
    operator = getattr(torch.ops.kernelwright, name).default
    torch.library.register_vmap(qualified, batching(operator, batch), lib=_LIBRARY)
    return operator


def batching(operator: Any, batch: Callable[..., tuple[Any, Any]] | None) -> Callable[..., tuple[Any, Any]]:
    """The ``torch.vmap`` rule of an operator; raises TransformError when called if there is none."""
    defaults = [argument.default_value for argument in operator._schema.arguments]

    def rule(info: Any, dims: tuple[Any, ...], *given: Any) -> tuple[Any, Any]:
        if batch is None:
            raise TransformError(
                f"kernelwright::{operator._opname} has no rule for torch.vmap; allowed: calls without it; pass the "
                "whole batch in dimensions of the operands, or call it for one element after the other"
            )
        rest = defaults[len(given) :]  # torch omits arguments that have default values
        return batch(info, (*dims, *[None] * len(rest)), *given, *rest)

    return rule


def laid_out(torchs: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``torchs`` to return results with the strides that ``fake`` promised to compilers."""

    def computed(*arguments: Any) -> Any:
        return _like(fake(*arguments), torchs(*arguments))

    return computed


def _like(wanted: Any, given: Any) -> Any:
    if isinstance(wanted, tuple):
        return tuple(_like(*pair) for pair in zip(wanted, given, strict=True))
    if wanted.stride() == given.stride() and given.dtype == wanted.dtype:
        return given
    return wanted.copy_(given)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, for a launch below autograd. Faster than ``torch.no_grad()`` if nothing requires grad."""
    return tensor.detach() if tensor.requires_grad else tensor
