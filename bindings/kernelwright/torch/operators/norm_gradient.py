"""Gradients of norms: ``kernelwright::norm_backward``, by the same dispatcher.

It recomputes the statistics, so only the operands are kept. If the backward pass is recorded itself, for second
derivatives, torch's own operators compute the gradients, which are differentiable to any order.
"""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import norms
from kernelwright.torch.operator import TransformError, laid_out, plain, register

_SCHEMA = (
    "norm_backward(Tensor dy, Tensor x, Tensor? weight, Tensor? dsum, bool bias, str kind, float eps, "
    'str dispatcher="") -> (Tensor, Tensor, Tensor)'
)

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep what :func:`backward` needs."""
    x, weight, bias, ctx.kind, ctx.eps, ctx.dispatcher = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def save_added(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Keep what :func:`backward_added` needs: the sum is the normalised operand."""
    _, _, weight, bias, ctx.kind, ctx.eps, ctx.dispatcher = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(output[1], weight)


def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of x, weight and bias."""
    return *_gradients(ctx, dy, None), None, None, None


def backward_added(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of x, residual, weight and bias."""
    dx, dweight, dbias = _gradients(ctx, dy, dsum)
    return dx, dx, dweight, dbias, None, None, None


def _gradients(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor | None) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    given = dy.contiguous(), x, weight, None if dsum is None else dsum.contiguous()
    run = norms.gradients if torch.is_grad_enabled() else OPERATOR
    dx, dweight, dbias = run(*given, ctx.bias, ctx.kind, ctx.eps, ctx.dispatcher)
    return dx, None if weight is None else dweight, dbias if ctx.bias else None


def _run(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, dsum: torch.Tensor | None, bias: bool, kind: str,
    eps: float, dispatcher: str = "",
) -> Gradients:  # fmt: skip
    in_use = dispatchers.find(dispatcher, x.device)
    dx, dweight, dbias = _fake(dy, x, weight, dsum, bias, kind, eps, dispatcher)
    results: dict[str, Any] = {"dsum": None if dsum is None else plain(dsum), "epsilon": eps}
    results |= {"dweight": dweight} if weight is not None else {}
    results |= {"dbias": dbias} if bias else {}
    run = in_use.rms_norm_backward if kind == "rms" else in_use.layer_norm_backward
    run(plain(dy), plain(x), None if weight is None else plain(weight), dx, **results)
    return dx, dweight, dbias


def _fake(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, dsum: torch.Tensor | None, bias: bool, kind: str,
    eps: float, dispatcher: str = "",
) -> Gradients:  # fmt: skip
    like = x if weight is None else weight
    row = x.shape[1:]
    return x.new_empty(x.shape), like.new_empty(0 if weight is None else row), like.new_empty(row if bias else 0)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Gradients) -> None:
    """Keep nothing: see :func:`_refuse`."""


def _refuse(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
    raise TransformError(
        "kernelwright::norm_backward has no derivative; allowed: second derivatives of rms_norm and layer_norm, by "
        "torch.autograd.grad(…, create_graph=True)"
    )


OPERATOR = register(_SCHEMA, _run, laid_out(norms.backward, _fake), _fake, _save, _refuse)
