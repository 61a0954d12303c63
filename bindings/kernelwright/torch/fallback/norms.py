"""Norms computed by torch's own operators, for :mod:`kernelwright.torch.operators.norm`; differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep


def public(
    kind: str, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, residual: torch.Tensor | None,
    shape: Sequence[int], eps: float | None, dispatcher: str = "",
) -> Any:  # fmt: skip
    """The fallback of ``kernelwright.torch.rms_norm`` and ``layer_norm``; with a residual, returns the sum too."""
    total = x if residual is None else x + residual
    if kind == "rms":
        normed = functional.rms_norm(total, list(shape), weight, eps)
    else:
        normed = functional.layer_norm(total, list(shape), weight, bias, 1e-5 if eps is None else eps)
    return normed if residual is None else (normed, total)


def forward(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str, eps: float, dispatcher: str = ""
) -> torch.Tensor:
    """The fallback of ``kernelwright::norm``."""
    with torch.no_grad():
        return _normalised(x, weight, bias, kind, eps)


def add_forward(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
    eps: float, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The fallback of ``kernelwright::add_norm``."""
    with torch.no_grad():
        total = x + residual
        return _normalised(total, weight, bias, kind, eps), total


def _normalised(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str, eps: float
) -> torch.Tensor:
    h, _ = _statistics(x, kind, eps)
    h = h if weight is None else h * weight
    return (h if bias is None else h + bias).to(x.dtype)


def _statistics(x: torch.Tensor, kind: str, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The normalised operand, in fp32, and the reciprocal of the root."""
    wide = x.to(torch.float32)
    wide = wide - wide.mean(-1, keepdim=True) if kind == "layer" else wide
    inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return wide * inverse, inverse


def gradients(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, dsum: torch.Tensor | None, bias: bool, kind: str,
    eps: float, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """dx, dweight and dbias; the gradient of an absent weight or bias has no elements."""
    h, inverse = _statistics(x, kind, eps)
    wide = dy.to(torch.float32)
    g = wide if weight is None else wide * weight
    mean = g.mean(-1, keepdim=True) if kind == "layer" else 0.0
    dx = inverse * (g - mean - h * (g * h).mean(-1, keepdim=True))
    dx = (dx if dsum is None else dx + dsum).to(x.dtype)
    like = x if weight is None else weight
    dweight = like.new_empty(0) if weight is None else (wide * h).sum(0).to(like.dtype)
    return dx, dweight, wide.sum(0).to(like.dtype) if bias else like.new_empty(0)


def backward(*given: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The fallback of ``kernelwright::norm_backward``."""
    with torch.no_grad():
        return gradients(*given)


def of_kind(kind: str) -> Callable[..., Any]:
    """:func:`public` for one kind."""
    return partial(public, kind)
