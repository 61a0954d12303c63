"""Registers an operator with torch: schema, implementation, results without data, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch.core.arena import Apart
from torch.autograd import forward_ad  # pants: no-infer-dep

# torch forgets what was registered with a library that is no longer referenced.
_LIBRARY = torch.library.Library("kernelwright", "DEF")
_APART = Apart()
_DEVICES = ("CPU", "CUDA")  # builds of torch for ROCm call their devices CUDA too


def register(
    schema: str,
    run: Callable[..., Any],
    fake: Callable[..., Any],
    save: Callable[[Any, tuple[Any, ...], Any], None],
    backward: Callable[..., Any],
) -> Any:
    """``torch.ops.kernelwright.<name>.default``, callable, traceable and differentiable.

    :param schema: name, arguments and results as torch writes them, without keyword-only arguments.
    :param run: computes results of its own memory from tensors on a CPU or GPU.
    :param fake: allocates results of the same shapes, strides and dtypes, from tensors without data.
    :param save: keeps on ``ctx`` what ``backward`` needs; called with ``ctx``, the arguments and the result.
    :param backward: gradients of all arguments from ``ctx`` and those of the results, by traceable operators alone.
    """
    name = schema.partition("(")[0]
    qualified = f"kernelwright::{name}"

    def launch(*arguments: Any) -> Any:
        # torch would take the tangents of operands without a forward formula for zeros.
        if forward_ad._current_level >= 0:
            raise NotImplementedError(
                f"{qualified} has no forward-mode derivative; use torch.autograd.grad or backward()"
            )
        with _APART:
            return run(*arguments)

    # Kernels are made for layouts: a compiler must hand over the strides that it was shown.
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
    for device in _DEVICES:
        _LIBRARY.impl(name, launch, device)
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    torch.library.register_autograd(qualified, backward, setup_context=save, lib=_LIBRARY)
    return getattr(torch.ops.kernelwright, name).default


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, for a launch below autograd. Quicker than ``torch.no_grad()`` where nothing requires grad."""
    return tensor.detach() if tensor.requires_grad else tensor
