"""``kernelwright::attention``: fused attention with gradients, and torch's ``scaled_dot_product_attention`` over it."""

from __future__ import annotations

import math
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.dispatch.operations.attention.cached import pair
from kernelwright.torch import dispatchers
from kernelwright.torch.operator import register
from kernelwright.torch.operators import attention_gradient
from kernelwright.torch.operators.attention_common import autocast, numbers

_SCHEMA = (
    "attention(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? slopes, Tensor? sinks, Tensor? seed, "
    'str mask="none", int window_left=-1, int window_right=-1, float? scale=None, float soft_cap=0.0, '
    'float dropout_p=0.0, bool with_lse=True, bool deterministic=False, str dispatcher="") -> (Tensor, Tensor)'
)


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
    mask: str | None = None,
    window: tuple[int, int] | None = None,
    alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    seed: torch.Tensor | None = None,
    deterministic: bool = False,
    return_lse: bool = False,
    dispatcher: str = "",
) -> Any:
    """:func:`torch.nn.functional.scaled_dot_product_attention` by the kernels that the dispatcher in use selects.

    Shapes, and what the first eight parameters mean, are torch's. Rows that see no key give zeros. Any strides are
    taken as they are where the last dimension is contiguous. Gradients of query, key, value, a floating-point
    ``attn_mask`` and ``sinks`` are computed by kernels of the same dispatcher.

    :param query: (…, heads, queries, hdim), or (queries, hdim) of one head.
    :param key: (…, heads, keys, hdim), with fewer heads where ``enable_gqa`` says so.
    :param value: (…, heads, keys, hdim_v).
    :param attn_mask: added to the scores, or boolean: False hides a key. It is broadcast to (…, heads, queries, keys).
    :param is_causal: query i sees the keys up to i; the same as ``mask="top_left"``.
    :param mask: ``"top_left"`` or ``"bottom_right"`` (the last query stands at the last key): causal, or with a
        ``window`` of that many keys on the left and right of each query's place, -1 for all.
    :param alibi_slopes: float32 (heads,) or (batch, heads): minus slope times distance is added to the scores.
    :param sinks: float32 (heads,): a score without a value for each head.
    :param soft_cap: scores become cap * tanh(score / cap); 0 is no cap.
    :param seed: two int64 numbers on the CPU, seed and offset of dropout; by default drawn from torch's generator.
    :param deterministic: whether the backward pass adds up in a fixed order.
    :param return_lse: whether the logarithm of each row's sum of exponentials is returned too, float32 (…, heads,
        queries), without gradient.
    :param dispatcher: the name that :func:`use` gave a dispatcher.
    :raises DispatcherNotFoundError: if none is in use for the device of ``query``.
    :raises ArrayError: for tensors that do not fit together, or that no kernel addresses.
    :raises ProblemError: for features that exclude each other.
    :raises NoKernelError: if no kernel serves the problem, or in the backward pass its gradients.
    """
    if is_causal and mask is not None:
        raise ArrayError("both is_causal and mask are given; pass one of them")
    _check_alike(query, key, value, enable_gqa)
    mask = mask or ("top_left" if is_causal else "none")
    if mask == "none" and window is not None:
        raise ArrayError(f"window is {window!r} without a mask; pass mask='top_left' or 'bottom_right' too")
    left, right = pair(window) or ((-1, 0) if mask != "none" else (-1, -1))
    query, key, value = autocast(query, key, value)
    if dropout_p > 0 and seed is None:
        seed = torch.randint(0, 2**62, (2,), dtype=torch.int64, device="cpu")
    operands = (query, key, value, attn_mask, sinks)
    recorded = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in operands)
    out, lse = OPERATOR(
        _folded(query), _folded(key), _folded(value), _bias(attn_mask, query, key), alibi_slopes, sinks, seed, mask,
        left, right, scale, soft_cap, dropout_p, recorded or return_lse, deterministic, dispatcher,
    )  # fmt: skip
    if query.dim() != 4:
        out = out.reshape(*query.shape[:-1], out.shape[-1])
        lse = lse.reshape(query.shape[:-1]) if return_lse else lse
    return (out, lse.detach()) if return_lse else out


def _check_alike(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> None:
    """ArrayError for other numbers of dimensions, and for heads that are shared though nobody says so."""
    if not 2 <= query.dim() == key.dim() == value.dim():
        raise ArrayError(
            f"query, key and value have shapes {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}; "
            "allowed: (…, heads, rows, head dimension) or (rows, head dimension), all with as many dimensions"
        )
    if query.dim() > 2 and key.shape[-3] != query.shape[-3] and not enable_gqa:
        raise ArrayError(
            f"query has {query.shape[-3]} heads and key {key.shape[-3]}; pass enable_gqa=True to share them"
        )


def _folded(tensor: torch.Tensor) -> torch.Tensor:
    """All batch dimensions as one; without heads, one head."""
    if tensor.dim() == 4:
        return tensor
    *front, heads, rows, inner = (1, *tensor.shape) if tensor.dim() == 2 else tensor.shape
    return tensor.reshape(math.prod(front), heads, rows, inner)


def _bias(mask: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    """What is added to the scores, in four dimensions; extents of 1 are broadcast."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -torch.inf)
    mask = mask.to(query.dtype)
    if query.dim() != 4:
        mask = _folded(mask.expand(*query.shape[:-1], key.shape[-2]))
    elif mask.shape[-1] != key.shape[-2]:
        mask = mask.expand(*mask.shape[:-1], key.shape[-2])
    mask = mask if mask.stride(-1) == 1 else mask.contiguous()
    return mask.reshape(*(1,) * (4 - mask.dim()), *mask.shape)


def _run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None, slopes: torch.Tensor | None,
    sinks: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none", window_left: int = -1,
    window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0, dropout_p: float = 0.0,
    with_lse: bool = True, deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    found = dispatchers.find(dispatcher, q.device)
    first, offset = numbers(seed)
    with torch.no_grad():  # operands may require grad: autograd is above
        out, lse = _results(q, v, with_lse)
        found.attention(
            q, k, v, out, lse=lse if with_lse else False, mask=mask,
            window=None if mask == "none" else (window_left, window_right), scale=scale, bias=bias,
            alibi_slopes=slopes, soft_cap=soft_cap, sinks=sinks, dropout_p=dropout_p, seed=first, offset=offset,
            layout="bhsd",
        )  # fmt: skip
    return out, lse


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None, slopes: torch.Tensor | None,
    sinks: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none", window_left: int = -1,
    window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0, dropout_p: float = 0.0,
    with_lse: bool = True, deterministic: bool = False, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    torch._check(
        q.shape[-1] == k.shape[-1],
        lambda: f"query has head dimension {q.shape[-1]} and key {k.shape[-1]}; they must be equal",
    )
    torch._check(
        k.shape[-2] == v.shape[-2], lambda: f"key has {k.shape[-2]} rows and value {v.shape[-2]}; they must be equal"
    )
    return _results(q, v, with_lse)


def _results(q: torch.Tensor, v: torch.Tensor, with_lse: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory of O, in the order of q's, and of LSE, which is empty where nobody asked for it."""
    out = attention_gradient.beside(q, v.shape[-1])
    return out, q.new_empty(q.shape[:-1] if with_lse else (0,), dtype=torch.float32)


OPERATOR = register(_SCHEMA, _run, _fake, attention_gradient.save, attention_gradient.backward)
