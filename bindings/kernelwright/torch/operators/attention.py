"""``kernelwright::attention``: fused attention with gradients, and torch's ``scaled_dot_product_attention`` over it."""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.dispatch.operations.attention.arguments import pair
from kernelwright.problems.literals import AttentionMask
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import attentions, decisions
from kernelwright.torch.inputs import autocast, check_dtype, check_tensors
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import attention_batching, attention_gradient
from kernelwright.torch.operators.attention_common import check_dtypes, dropout, features, records
from kernelwright.torch.operators.attention_inputs import Folded, bias, fold
from kernelwright.torch.operators.native import attention as native
from kernelwright.torch.operators.native.taught import computed
from kernelwright.torch.road import ROAD
from kernelwright.torch.schemas import ATTENTION
from torch.compiler import is_dynamo_compiling  # pants: no-infer-dep

__all__ = ["scaled_dot_product_attention"]

_DECISIONS = decisions.of("attention")
_PYTHON_ROAD = bool(ROAD.why_not)


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    mask: AttentionMask | None = None,
    window: tuple[int, int] | None = None,
    alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    seed: torch.Tensor | None = None,
    deterministic: bool = False,
    return_lse: bool = False,
    dispatcher: str = "",
) -> Any:
    """:func:`torch.nn.functional.scaled_dot_product_attention`, computed by kernels of the dispatcher in use.

    Shapes and the first eight parameters are as in torch. Rows that see no key give zeros. Batches and heads are
    broadcast. Operands are read in place with any strides if the last dimension is contiguous; others are copied, which
    the logger ``kernelwright.torch`` reports at level DEBUG. Gradients of query, key, value, a floating-point
    ``attn_mask`` and ``sinks`` are computed by kernels of the same dispatcher.

    :param query: (…, heads, queries, hdim), or (queries, hdim) for one head.
    :param key: (…, heads, keys, hdim), with fewer heads if ``enable_gqa`` is true.
    :param value: (…, heads, keys, hdim_v).
    :param attn_mask: boolean, where False hides a key; or float32 or the query's dtype, added to the scores. It is
        broadcast to (…, heads, queries, keys).
    :param dropout_p: the fraction of probabilities to drop, from 0 to 1.
    :param is_causal: query i sees the keys up to i, as with ``mask="top_left"``; not allowed with ``attn_mask``.
    :param mask: ``"top_left"`` or ``"bottom_right"`` (the last query is at the last key): causal, or with a ``window``
        of that many keys to the left and right of each query's position, -1 for all.
    :param alibi_slopes: float32 (heads,) or (batch, heads): -slope * distance is added to the scores.
    :param sinks: float32 (heads,): one score without a value per head.
    :param soft_cap: scores become cap * tanh(score / cap); 0 for no cap.
    :param seed: two int64 numbers on the CPU, dropout seed and offset; by default drawn from torch's generator.
    :param deterministic: whether the backward pass sums in a fixed order.
    :param return_lse: whether to return the logarithm of each row's sum of exponentials too, float32 (…, heads,
        queries), without gradient.
    :param dispatcher: a dispatcher's name, as given to :func:`use`.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``query``.
    :raises ArrayError: for non-tensors, for float64, and for tensors that do not fit together.
    :raises ProblemError: for features that exclude each other.
    :raises NoKernelError: in a :func:`strict` region, if no kernel serves the problem or its gradients.
    """
    extras = mask is not None or window is not None or alibi_slopes is not None or sinks is not None
    if extras or seed is not None or return_lse or soft_cap != 0:
        # torch's own function supports none of these, so the operator decides.
        return _attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, dispatcher, deterministic, False,
            mask, window, alibi_slopes, sinks, soft_cap, seed, return_lse,
        )  # fmt: skip
    python_road = _PYTHON_ROAD or dispatcher != "" or is_dynamo_compiling()
    asked = query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    if not python_road:
        result = native.attention(*asked, deterministic)
        if result is not None:
            return result
    # Not all kernels write LSE for a gradient.
    recorded = torch.is_grad_enabled() and native.recorded(query, key, value)
    given = *asked, dispatcher, deterministic, recorded
    if python_road:
        return _DECISIONS.call(_attention, attentions.public, given, 4)
    return computed(_DECISIONS, _attention, attentions.public, given, 4, lambda *made: native.learn(*asked, *made))


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, enable_gqa: bool, dispatcher: str, deterministic: bool, _: bool,
    mask: AttentionMask | None = None, window: tuple[int, int] | None = None, alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None, soft_cap: float = 0.0, seed: torch.Tensor | None = None,
    return_lse: bool = False,
) -> Any:  # fmt: skip
    check_tensors(
        query=query, key=key, value=value, attn_mask=attn_mask, alibi_slopes=alibi_slopes, sinks=sinks, seed=seed
    )
    check_dtype("query", query)
    mask, left, right = _mask(mask, window, is_causal, attn_mask)
    query, key, value, attn_mask = autocast(query, key, value, attn_mask)
    check_dtypes(query, key, value)
    folded = fold(query, key, value, enable_gqa)
    dropout_p, kept = dropout(dropout_p)
    if dropout_p > 0 and seed is None:
        seed = torch.randint(0, 2**62, (2,), dtype=torch.int64, device="cpu")
    if 0 in folded.out[:-1] or (folded.out[-1] == 0 and not return_lse):
        return _nothing(folded, return_lse)
    recorded = records(query, key, value, attn_mask, sinks)
    out, lse = OPERATOR(
        folded.query, folded.key, folded.value, bias(attn_mask, folded), alibi_slopes, sinks, seed, mask, left, right,
        scale, soft_cap, dropout_p, recorded or return_lse, deterministic, dispatcher,
    )  # fmt: skip
    if len(folded.out) != 4:
        out = out.reshape(folded.out)
        lse = lse.reshape(folded.out[:-1]) if return_lse else lse
    out = out if kept else out * 0.0
    return (out, lse.detach()) if return_lse else out


def _mask(
    mask: AttentionMask | None, window: tuple[int, int] | None, is_causal: bool, attn_mask: torch.Tensor | None
) -> tuple[AttentionMask, int, int]:
    """Keys that a query sees by position: mask, and keys to its left and right. ArrayError for contradictions."""
    if is_causal and mask is not None:
        raise ArrayError("both is_causal and mask are given; pass one of them")
    if is_causal and attn_mask is not None:
        raise ArrayError(
            "both is_causal and attn_mask are given; allowed: one of them, as in torch; pass mask='top_left' beside "
            "attn_mask for both"
        )
    mask = mask or ("top_left" if is_causal else "none")
    if mask == "none" and window is not None:
        raise ArrayError(f"window is {window!r} without a mask; pass mask='top_left' or 'bottom_right' too")
    left, right = pair(window) or ((-1, 0) if mask != "none" else (-1, -1))
    return mask, left, right


def _nothing(folded: Folded, return_lse: bool) -> Any:
    """A result without elements, whose gradients are zero."""
    q, k, v, scores = folded
    out = q.new_empty(folded.out) * (q.sum() + k.sum() + v.sum())
    return (out, q.new_full(scores[:-1], -torch.inf, dtype=torch.float32)) if return_lse else out


def _run(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    a = ATTENTION.arguments(given)
    with torch.no_grad():  # operands may require grad: autograd is above
        out, lse = _results(a.q, a.v, a.with_lse)
        dispatchers.find(a.dispatcher, a.q.device).attention(
            a.q, a.k, a.v, out, lse=lse if a.with_lse else False, bias=a.bias, alibi_slopes=a.slopes, sinks=a.sinks,
            layout="bhsd", **features(a),
        )  # fmt: skip
    return out, lse


def _fake(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    a = ATTENTION.arguments(given)
    q, k, v = a.q, a.k, a.v
    torch._check(
        q.shape[-1] == k.shape[-1],
        lambda: f"query has head dimension {q.shape[-1]} and key {k.shape[-1]}; they must be equal",
    )
    torch._check(
        k.shape[-2] == v.shape[-2], lambda: f"key has {k.shape[-2]} rows and value {v.shape[-2]}; they must be equal"
    )
    return _results(q, v, a.with_lse)


def _results(q: torch.Tensor, v: torch.Tensor, with_lse: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate O, in the order of q's memory, and LSE, which is empty if not requested."""
    out = attention_gradient.beside(q, v.shape[-1])
    return out, q.new_empty(q.shape[:-1] if with_lse else (0,), dtype=torch.float32)


OPERATOR = register(
    ATTENTION.text,
    _run,
    laid_out(attentions.forward, _fake),
    _fake,
    attention_gradient.save,
    attention_gradient.backward,
    attention_batching.forward,
)
