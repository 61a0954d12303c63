"""``kernelwright::attention_backward``: gradients of ``kernelwright::attention``, by kernels of the same dispatcher.

A bias that was broadcast gets the sum over what it was broadcast to.
"""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import attentions
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import attention_batching
from kernelwright.torch.operators.attention_common import (
    check_gradients,
    no_second_derivative,
    numbers,
    of_sinks,
    with_advice,
)

_SCHEMA = (
    "attention_backward(Tensor q, Tensor k, Tensor v, Tensor out, Tensor grad, Tensor lse, Tensor? bias, "
    'Tensor? slopes, Tensor? seed, str mask="none", int window_left=-1, int window_right=-1, float? scale=None, '
    "float soft_cap=0.0, "
    'float dropout_p=0.0, bool with_dbias=False, bool deterministic=False, str dispatcher="") '
    "-> (Tensor, Tensor, Tensor, Tensor)"
)


def beside(q: torch.Tensor, hdim: Any) -> torch.Tensor:
    """Memory like that of q, with another head dimension: heads before rows, or rows before heads as q has them."""
    batch, heads, rows, _ = q.shape
    if q.stride(1) < q.stride(2):
        return q.new_empty(batch, rows, heads, hdim).transpose(1, 2)
    return q.new_empty(batch, heads, rows, hdim)


def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Keep what :func:`backward` needs. ArrayError for a gradient that is not computed."""
    q, k, v, bias, slopes, sinks, seed, *ctx.options, with_lse, ctx.deterministic, ctx.dispatcher = inputs
    check_gradients((("query", q), ("key", k), ("value", v)), slopes, (bias, sinks), with_lse)
    ctx.save_for_backward(q, k, v, bias, slopes, sinks, seed, *output)


def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of Q, K, V, bias and sinks. NoKernelError where no kernel serves them."""
    q, k, v, bias, slopes, sinks, seed, out, lse = ctx.saved_tensors
    with_dbias = bias is not None and ctx.needs_input_grad[3]
    if grad.stride(-1) != 1:
        grad = grad.contiguous()
    dq, dk, dv, dbias = OPERATOR(
        q, k, v, out, grad, lse, bias, slopes, seed, *ctx.options, with_dbias, ctx.deterministic, ctx.dispatcher
    )
    dsinks = None
    if sinks is not None and ctx.needs_input_grad[5]:
        dsinks = of_sinks(sinks, lse, (grad.float() * out.float()).sum(-1))
    of_bias = dbias.sum_to_size(bias.shape) if with_dbias else None
    return dq, dk, dv, of_bias, None, dsinks, *[None] * 10


def _run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor,
    bias: torch.Tensor | None, slopes: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none",
    window_left: int = -1, window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0,
    dropout_p: float = 0.0, with_dbias: bool = False, deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    in_use = dispatchers.find(dispatcher, q.device)
    first, offset = numbers(seed)
    with torch.no_grad(), with_advice(dropout_p, soft_cap, with_dbias):
        dq, dk, dv, dbias = _results(q, k, v, bias, with_dbias)
        in_use.attention_backward(
            q, k, v, out, grad, lse, dq=dq, dk=dk, dv=dv, dbias=dbias if with_dbias else False, mask=mask,
            window=None if mask == "none" else (window_left, window_right), scale=scale, bias=bias,
            alibi_slopes=slopes, soft_cap=soft_cap, dropout_p=dropout_p, seed=first, offset=offset,
            deterministic=deterministic, layout="bhsd",
        )  # fmt: skip
    return dq, dk, dv, dbias


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor,
    bias: torch.Tensor | None, slopes: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none",
    window_left: int = -1, window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0,
    dropout_p: float = 0.0, with_dbias: bool = False, deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _results(q, k, v, bias, with_dbias)


def _results(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None, with_dbias: bool
) -> tuple[torch.Tensor, ...]:
    """Memory in the order of the operands; that of dbias, not broadcast, is empty where nobody asked for it."""
    whole = bias.new_empty((*q.shape[:-1], k.shape[-2]) if with_dbias else (0,)) if bias is not None else q.new_empty(0)
    return *(beside(one, one.shape[-1]) for one in (q, k, v)), whole


OPERATOR = register(
    _SCHEMA,
    _run,
    laid_out(attentions.backward, _fake),
    _fake,
    *no_second_derivative("attention"),
    attention_batching.backward,
)
