"""``kernelwright::attention_varlen``: attention of requests of different lengths, and torch's ``varlen_attn`` over it.

Rows of all requests stand one behind the other. ``kernelwright::attention_varlen_backward`` computes the gradients, by
kernels of the same dispatcher.
"""

from __future__ import annotations

from typing import Any

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
    no_second_derivative,
    numbers,
    of_sinks,
    records,
    with_advice,
)

__all__ = ["varlen_attn"]

_FEATURES = (
    'str mask="none", int window_left=-1, int window_right=-1, float? scale=None, float soft_cap=0.0, '
    "float dropout_p=0.0, "
)
_SCHEMA = (
    "attention_varlen(Tensor q, Tensor k, Tensor v, Tensor cu_q, Tensor cu_k, SymInt max_q, SymInt max_k, "
    f"Tensor? seqused_k, Tensor? slopes, Tensor? sinks, Tensor? seed, {_FEATURES}bool with_lse=True, "
    'bool deterministic=False, str dispatcher="") -> (Tensor, Tensor)'
)
_GRADIENT_SCHEMA = (
    "attention_varlen_backward(Tensor q, Tensor k, Tensor v, Tensor out, Tensor grad, Tensor lse, Tensor cu_q, "
    f"Tensor cu_k, SymInt max_q, SymInt max_k, Tensor? seqused_k, Tensor? slopes, Tensor? seed, {_FEATURES}"
    'bool deterministic=False, str dispatcher="") -> (Tensor, Tensor, Tensor)'
)


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
    align: str = "bottom_right",
    alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout_p: float = 0.0,
    seed: torch.Tensor | None = None,
    deterministic: bool = False,
    return_lse: bool = False,
    dispatcher: str = "",
) -> Any:
    """:func:`torch.nn.attention.varlen.varlen_attn` by the kernels that the dispatcher in use selects.

    What parameters up to ``seqused_k`` mean is torch's. Gradients of query, key, value and ``sinks`` are computed by
    kernels of the same dispatcher. Lengths are read on the device: neither call nor gradient waits for it.

    :param query: (queries of all requests, heads, hdim).
    :param key: (keys of all requests, heads, hdim), with fewer heads where ``enable_gqa`` says so.
    :param value: (keys of all requests, heads, hdim_v).
    :param cu_seq_q: int32 (requests + 1,): where each request's queries begin, and behind them how many there are.
    :param cu_seq_k: the same of keys.
    :param max_q: queries of the longest request, or more; ``max_k`` likewise.
    :param window_size: keys that a query sees on the left and right of its place; -1 for all. (-1, 0) is causal.
    :param seqused_k: int32 (requests,): how many keys of each request count; by default all.
    :param align: where queries stand: ``"bottom_right"``, the last one at the last key, as in torch, or ``"top_left"``.
    :param alibi_slopes: float32 (heads,) or (requests, heads): minus slope times distance is added to the scores.
    :param sinks: float32 (heads,): a score without a value for each head.
    :param soft_cap: scores become cap * tanh(score / cap); 0 is no cap.
    :param seed: two int64 numbers on the CPU, seed and offset of dropout; by default drawn from torch's generator.
    :param deterministic: whether the backward pass adds up in a fixed order.
    :param return_lse: whether the logarithm of each row's sum of exponentials is returned too, float32 (heads,
        queries), without gradient.
    :param dispatcher: the name that :func:`use` gave a dispatcher.
    :returns: (queries of all requests, heads, hdim_v), or that and LSE.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``query``.
    :raises ArrayError: for tensors that do not fit together, or that no kernel addresses.
    :raises ProblemError: for features that exclude each other.
    :raises NoKernelError: where :func:`strict` holds and no kernel serves the problem or its gradients.
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


def _features(
    mask: str, left: int, right: int, scale: float | None, soft_cap: float, dropout_p: float, seed: torch.Tensor | None,
) -> dict[str, Any]:  # fmt: skip
    first, offset = numbers(seed)
    return {
        "mask": mask, "window": None if mask == "none" else (left, right), "scale": scale, "soft_cap": soft_cap,
        "dropout_p": dropout_p, "seed": first, "offset": offset,
    }  # fmt: skip


def _run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int,
    seqused_k: torch.Tensor | None, slopes: torch.Tensor | None, sinks: torch.Tensor | None, seed: torch.Tensor | None,
    mask: str = "none", window_left: int = -1, window_right: int = -1, scale: float | None = None,
    soft_cap: float = 0.0, dropout_p: float = 0.0, with_lse: bool = True, deterministic: bool = False,
    dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    in_use = dispatchers.find(dispatcher, q.device)
    features = _features(mask, window_left, window_right, scale, soft_cap, dropout_p, seed)
    with torch.no_grad():  # operands may require grad: autograd is above
        out, lse = _results(q, v, with_lse)
        in_use.attention(
            q, k, v, out, lse=lse if with_lse else False, alibi_slopes=slopes, sinks=sinks, cu_seqlens_q=cu_q,
            cu_seqlens_k=cu_k, max_seqlen_q=max_q, max_seqlen_k=max_k, seqlens_k=seqused_k, **features,
        )  # fmt: skip
    return out, lse


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int,
    seqused_k: torch.Tensor | None, slopes: torch.Tensor | None, sinks: torch.Tensor | None, seed: torch.Tensor | None,
    mask: str = "none", window_left: int = -1, window_right: int = -1, scale: float | None = None,
    soft_cap: float = 0.0, dropout_p: float = 0.0, with_lse: bool = True, deterministic: bool = False,
    dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    for name, tensor in (("query", q), ("key", k), ("value", v)):
        torch._check(tensor.dim() == 3, lambda name=name, tensor=tensor: f"{name} has {tensor.dim()} dimensions, not 3")
    torch._check(
        q.shape[2] == k.shape[2],
        lambda: f"query has head dimension {q.shape[2]} and key {k.shape[2]}; they must be equal",
    )
    torch._check(
        k.shape[0] == v.shape[0], lambda: f"key has {k.shape[0]} rows and value {v.shape[0]}; they must be equal"
    )
    return _results(q, v, with_lse)


def _results(q: torch.Tensor, v: torch.Tensor, with_lse: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory of O and LSE, which is empty where nobody asked for it."""
    rows, heads, _ = q.shape
    return q.new_empty(rows, heads, v.shape[2]), q.new_empty((heads, rows) if with_lse else (0,), dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Keep what :func:`_backward` needs. ArrayError for operands without gradients that require one."""
    q, k, v, cu_q, cu_k, *ctx.longest, seqused_k, slopes, sinks, seed = inputs[:11]
    *ctx.options, with_lse, ctx.deterministic, ctx.dispatcher = inputs[11:]
    check_gradients((("query", q), ("key", k), ("value", v)), slopes, (sinks,), with_lse)
    ctx.save_for_backward(q, k, v, cu_q, cu_k, seqused_k, slopes, sinks, seed, *output)


def _backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of Q, K, V and sinks. NoKernelError where no kernel serves them."""
    q, k, v, cu_q, cu_k, seqused_k, slopes, sinks, seed, out, lse = ctx.saved_tensors
    if grad.stride(-1) != 1:
        grad = grad.contiguous()
    of_qkv = GRADIENT(
        q, k, v, out, grad, lse, cu_q, cu_k, *ctx.longest, seqused_k, slopes, seed, *ctx.options, ctx.deterministic,
        ctx.dispatcher,
    )  # fmt: skip
    dsinks = None
    if sinks is not None and ctx.needs_input_grad[9]:
        dsinks = of_sinks(sinks, lse, (grad.float() * out.float()).sum(-1).t())
    return *of_qkv, *[None] * 6, dsinks, *[None] * 10


def _run_gradient(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor,
    cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int, seqused_k: torch.Tensor | None,
    slopes: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none", window_left: int = -1,
    window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0, dropout_p: float = 0.0,
    deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    in_use = dispatchers.find(dispatcher, q.device)
    features = _features(mask, window_left, window_right, scale, soft_cap, dropout_p, seed)
    with torch.no_grad(), with_advice(dropout_p, soft_cap):
        dq, dk, dv = _gradients(q, k, v)
        in_use.attention_backward(
            q, k, v, out, grad, lse, dq=dq, dk=dk, dv=dv, alibi_slopes=slopes, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k,
            max_seqlen_q=max_q, max_seqlen_k=max_k, seqlens_k=seqused_k, deterministic=deterministic, **features,
        )  # fmt: skip
    return dq, dk, dv


def _fake_gradient(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor,
    cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int, seqused_k: torch.Tensor | None,
    slopes: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none", window_left: int = -1,
    window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0, dropout_p: float = 0.0,
    deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _gradients(q, k, v)


def _gradients(*operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(one.new_empty(one.shape) for one in operands)


OPERATOR = register(
    _SCHEMA,
    _run,
    laid_out(varlen.forward, _fake),
    _fake,
    _save,
    _backward,
    attention_batching.varlen,
)
GRADIENT = register(
    _GRADIENT_SCHEMA,
    _run_gradient,
    laid_out(varlen.backward, _fake_gradient),
    _fake_gradient,
    *no_second_derivative("attention_varlen"),
    attention_batching.varlen_backward,
)
