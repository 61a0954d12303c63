"""``kernelwright::attention_varlen``: attention of requests of different lengths, and torch's ``varlen_attn`` over it.

The rows of all requests are concatenated. ``kernelwright::attention_varlen_backward`` computes the gradients, by
kernels of the same dispatcher.
"""

from __future__ import annotations

from typing import Any, Literal

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import varlen
from kernelwright.torch.inputs import addressable, autocast, check_tensors
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import attention_batching
from kernelwright.torch.operators.attention_common import (
    check_dtypes,
    check_gradients,
    dropout,
    features,
    no_second_derivative,
    of_sinks,
    records,
    with_advice,
)
from kernelwright.torch.schemas import VARLEN, VARLEN_BACKWARD, keep, kept

__all__ = ["varlen_attn"]


def varlen_attn(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: torch.Tensor | None = None,
    align: Literal["top_left", "bottom_right"] = "bottom_right",
    alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout_p: float = 0.0,
    seed: torch.Tensor | None = None,
    deterministic: bool = False,
    return_lse: bool = False,
    dispatcher: str = "",
) -> Any:
    """:func:`torch.nn.attention.varlen.varlen_attn`, computed by kernels of the dispatcher in use.

    Parameters up to ``seqused_k`` are as in torch. Gradients of query, key, value and ``sinks`` are computed by kernels
    of the same dispatcher. Lengths are read on the device: neither the call nor the gradient synchronises with it.

    :param query: (queries of all requests, heads, hdim).
    :param key: (keys of all requests, heads, hdim), with fewer heads if ``enable_gqa`` is true.
    :param value: (keys of all requests, heads, hdim_v).
    :param cu_seq_q: int32 (requests + 1,): offset of each request's queries, followed by their total number.
    :param cu_seq_k: the same for keys.
    :param max_q: number of queries of the longest request, or more; ``max_k`` likewise for keys.
    :param window_size: keys that a query sees to the left and right of its position; -1 for all. (-1, 0) is causal.
    :param seqused_k: int32 (requests,): number of valid keys of each request; by default all.
    :param align: position of queries: ``"bottom_right"``, the last one at the last key, as in torch, or ``"top_left"``.
    :param alibi_slopes: float32 (heads,) or (requests, heads): -slope * distance is added to the scores.
    :param sinks: float32 (heads,): one score without a value per head.
    :param soft_cap: scores become cap * tanh(score / cap); 0 for no cap.
    :param seed: two int64 numbers on the CPU, dropout seed and offset; by default drawn from torch's generator.
    :param deterministic: whether the backward pass sums in a fixed order.
    :param return_lse: whether to return the logarithm of each row's sum of exponentials too, float32 (heads, queries),
        without gradient.
    :param dispatcher: a dispatcher's name, as given to :func:`use`.
    :returns: (queries of all requests, heads, hdim_v), or a tuple of it and LSE.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``query``.
    :raises ArrayError: for tensors that do not fit together, or that no kernel addresses.
    :raises ProblemError: for features that exclude each other.
    :raises NoKernelError: in a :func:`strict` region, if no kernel serves the problem or its gradients.
    """
    check_tensors(
        query=query, key=key, value=value, cu_seq_q=cu_seq_q, cu_seq_k=cu_seq_k, seqused_k=seqused_k,
        alibi_slopes=alibi_slopes, sinks=sinks, seed=seed,
    )  # fmt: skip
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise ArrayError(
                f"{name} has shape {tuple(tensor.shape)}; allowed: (rows of all requests, heads, head dimension)"
            )
    if key.shape[-2] != query.shape[-2] and not enable_gqa:
        raise ArrayError(
            f"query has {query.shape[-2]} heads and key {key.shape[-2]}; pass enable_gqa=True to share them"
        )
    if align not in ("top_left", "bottom_right"):
        raise ArrayError(f"align is {align!r}; allowed: 'top_left', 'bottom_right'")
    for name, tensor in (("cu_seq_q", cu_seq_q), ("cu_seq_k", cu_seq_k), ("seqused_k", seqused_k)):
        if tensor is not None and tensor.dtype != torch.int32:
            raise ArrayError(f"{name} is {tensor.dtype}; allowed: torch.int32")
    left, right = window_size
    mask = "none" if left < 0 and right < 0 else align
    query, key, value = autocast(query, key, value)
    check_dtypes(query, key, value)
    query, key, value = addressable("query", query), addressable("key", key), addressable("value", value)
    dropout_p, kept = dropout(dropout_p)
    if dropout_p > 0 and seed is None:
        seed = torch.randint(0, 2**62, (2,), dtype=torch.int64, device="cpu")
    recorded = records(query, key, value, sinks)
    out, lse = OPERATOR(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, seqused_k, alibi_slopes, sinks, seed, mask, left, right,
        scale, soft_cap, dropout_p, recorded or return_lse, deterministic, dispatcher,
    )  # fmt: skip
    out = out if kept else out * 0.0
    return (out, lse.detach()) if return_lse else out


def _run(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    a = VARLEN.arguments(given)
    with torch.no_grad():  # operands may require grad: autograd is above
        out, lse = _results(a.q, a.v, a.with_lse)
        dispatchers.find(a.dispatcher, a.q.device).attention(
            a.q, a.k, a.v, out, lse=lse if a.with_lse else False, sinks=a.sinks, **_lengths(a), **features(a)
        )
    return out, lse


def _lengths(a: Any) -> dict[str, Any]:
    return {
        "alibi_slopes": a.slopes, "cu_seqlens_q": a.cu_q, "cu_seqlens_k": a.cu_k, "max_seqlen_q": a.max_q,
        "max_seqlen_k": a.max_k, "seqlens_k": a.seqused_k,
    }  # fmt: skip


def _fake(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    a = VARLEN.arguments(given)
    q, k, v = a.q, a.k, a.v
    for name, tensor in (("query", q), ("key", k), ("value", v)):
        torch._check(tensor.dim() == 3, lambda name=name, tensor=tensor: f"{name} has {tensor.dim()} dimensions, not 3")
    torch._check(
        q.shape[2] == k.shape[2],
        lambda: f"query has head dimension {q.shape[2]} and key {k.shape[2]}; they must be equal",
    )
    torch._check(
        k.shape[0] == v.shape[0], lambda: f"key has {k.shape[0]} rows and value {v.shape[0]}; they must be equal"
    )
    return _results(q, v, a.with_lse)


def _results(q: torch.Tensor, v: torch.Tensor, with_lse: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate O and LSE, which is empty if not requested."""
    rows, heads, _ = q.shape
    return q.new_empty(rows, heads, v.shape[2]), q.new_empty((heads, rows) if with_lse else (0,), dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Keep what :func:`_backward` needs. Raises ArrayError for operands without gradients that require one."""
    a = VARLEN.arguments(inputs)
    check_gradients((("query", a.q), ("key", a.k), ("value", a.v)), a.slopes, (a.sinks,), a.with_lse)
    keep(ctx, a, output)


def _backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of Q, K, V and sinks. Raises NoKernelError if no kernel serves them."""
    a, out, lse = kept(ctx)
    if grad.stride(-1) != 1:
        grad = grad.contiguous()
    dq, dk, dv = GRADIENT(*VARLEN_BACKWARD.of(a, out=out, grad=grad, lse=lse))
    dsinks = None
    if a.sinks is not None and VARLEN.arguments(ctx.needs_input_grad).sinks:
        dsinks = of_sinks(a.sinks, lse, (grad.float() * out.float()).sum(-1).t())
    return VARLEN.gradients(q=dq, k=dk, v=dv, sinks=dsinks)


def _run_gradient(*given: Any) -> tuple[torch.Tensor, ...]:
    a = VARLEN_BACKWARD.arguments(given)
    with torch.no_grad(), with_advice(a.dropout_p, a.soft_cap):
        dq, dk, dv = _gradients(a.q, a.k, a.v)
        dispatchers.find(a.dispatcher, a.q.device).attention_backward(
            a.q, a.k, a.v, a.out, a.grad, a.lse, dq=dq, dk=dk, dv=dv, deterministic=a.deterministic, **_lengths(a),
            **features(a),
        )  # fmt: skip
    return dq, dk, dv


def _fake_gradient(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any) -> tuple[torch.Tensor, ...]:
    return _gradients(q, k, v)


def _gradients(*operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(one.new_empty(one.shape) for one in operands)


OPERATOR = register(
    VARLEN.text,
    _run,
    laid_out(varlen.forward, _fake),
    _fake,
    _save,
    _backward,
    attention_batching.varlen,
)
GRADIENT = register(
    VARLEN_BACKWARD.text,
    _run_gradient,
    laid_out(varlen.backward, _fake_gradient),
    _fake_gradient,
    *no_second_derivative("attention_varlen"),
    attention_batching.varlen_backward,
)
