"""Attention computed by torch's own operators, for :mod:`kernelwright.torch.operators.attention`.

torch's ``scaled_dot_product_attention`` supports neither LSE nor windows, sinks, soft caps and ALiBi slopes. For those,
scores are computed by products, in fp32, for a few queries at a time: memory does not grow quadratically.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.torch.fallback import dropout
from kernelwright.torch.schemas import ATTENTION, ATTENTION_BACKWARD
from torch.autograd import forward_ad  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep
from torch.nn.attention import SDPBackend, sdpa_kernel  # pants: no-infer-dep

_SCORES = 2**24  # scores computed in a step
_TORCHS = functional.scaled_dot_product_attention  # whatever may replace it later


class Rules(NamedTuple):
    """Modifications of scores."""

    mask: str
    left: int
    right: int
    scale: float | None
    soft_cap: float
    dropout_p: float

    @classmethod
    def of(cls, a: Any) -> Rules:
        """The rules in an operator's arguments."""
        return cls(a.mask, a.window_left, a.window_right, a.scale, a.soft_cap, a.dropout_p)


class Operands(NamedTuple):
    """The tensors of one launch. ``bias`` has four dimensions, ``slopes`` one or two."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    bias: torch.Tensor | None
    slopes: torch.Tensor | None
    sinks: torch.Tensor | None
    seed: torch.Tensor | None


class _Step(NamedTuple):
    """A chunk of queries: positions, scores before the soft cap and at the end, and the factors of dropout."""

    rows: slice
    plain: torch.Tensor
    scores: torch.Tensor
    kept: Any


def _repeated(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _steps(given: Operands, rules: Rules) -> Iterator[_Step]:
    q, k = given.q, given.k
    (batch, heads, queries, hdim), keys = q.shape, k.shape[2]
    scale = 1 / math.sqrt(hdim) if rules.scale is None else rules.scale
    transposed = _repeated(k, heads).float().mT
    each = max(1, _SCORES // max(batch * heads * keys, 1))
    for first in range(0, queries, each):
        rows = slice(first, min(first + each, queries))
        plain = q[:, :, rows].float() @ transposed * scale
        scores = rules.soft_cap * torch.tanh(plain / rules.soft_cap) if rules.soft_cap else plain
        if given.bias is not None:
            bias = given.bias
            scores = scores + (bias if bias.shape[2] == 1 else bias[:, :, rows]).float()
        at = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
        key = torch.arange(keys, device=q.device)
        if given.slopes is not None:
            slopes = given.slopes.float()[..., None, None]
            shift = 0 if rules.mask == "top_left" else keys - queries
            scores = scores - slopes * (key - at - shift).abs()
        if rules.mask != "none":
            distance = key - at - (keys - queries if rules.mask == "bottom_right" else 0)
            hidden = torch.zeros_like(distance, dtype=torch.bool)
            if rules.left >= 0:
                hidden |= distance < -rules.left
            if rules.right >= 0:
                hidden |= distance > rules.right
            scores = scores.masked_fill(hidden, -torch.inf)
        yield _Step(rows, plain, scores, _kept(given.seed, rules.dropout_p, rows, scores))


def _kept(seed: torch.Tensor | None, share: float, rows: slice, scores: torch.Tensor) -> Any:
    if share == 0:
        return 1.0
    return dropout.kept(seed, share, rows, scores.shape, scores.device) / (1 - share)


def _p(scores: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Probabilities; zeros in rows that see no key."""
    return torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None])


def with_lse(given: Operands, rules: Rules) -> tuple[torch.Tensor, torch.Tensor]:
    """O (batch, heads, queries, hdim_v) and LSE in fp32."""
    q, v = given.q, given.v
    values = _repeated(v, q.shape[1]).float()
    out, lse = q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(q.shape[:-1], dtype=torch.float32)
    for step in _steps(given, rules):
        sums = torch.logsumexp(step.scores, -1)
        if given.sinks is not None:
            sums = torch.logaddexp(sums, given.sinks.float()[:, None])
        lse[:, :, step.rows] = sums
        out[:, :, step.rows] = ((_p(step.scores, sums) * step.kept) @ values).to(q.dtype)
    return out, lse


def gradients(
    given: Operands, rules: Rules, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor, with_dbias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """dQ, dK, dV, and dbias (batch, heads, queries, keys) if it is requested.

    With P = exp(S - LSE), dropped as before: dV = Pᵀ·dO, dS = P * (dO·Vᵀ - rowsum(dO * O)).
    """
    q, k, v = given.q, given.k, given.v
    heads, scale = q.shape[1], 1 / math.sqrt(q.shape[-1]) if rules.scale is None else rules.scale
    keys, values = _repeated(k, heads).float(), _repeated(v, heads).float()
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(keys), torch.zeros_like(values)
    dbias = None
    if with_dbias and given.bias is not None:
        dbias = given.bias.new_empty(*q.shape[:-1], k.shape[2])
    for step in _steps(given, rules):
        do, rows = grad[:, :, step.rows].float(), step.rows
        p = _p(step.scores, lse[:, :, rows])
        dv += (p * step.kept).mT @ do
        d = (do * out[:, :, rows].float()).sum(-1, keepdim=True)
        ds = p * (do @ values.mT * step.kept - d)
        if dbias is not None:
            dbias[:, :, rows] = ds.to(dbias.dtype)
        if rules.soft_cap:
            ds = ds * (1 - torch.tanh(step.plain / rules.soft_cap) ** 2)
        dq[:, :, rows] = (ds @ keys * scale).to(q.dtype)
        dk += ds.mT @ q[:, :, rows].float() * scale
    return dq, _summed(dk, k), _summed(dv, v), dbias


def _summed(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The gradient of K or V from those of each head of Q."""
    heads = like.shape[1]
    return gradient.unflatten(1, (heads, -1)).sum(2).to(like.dtype)


def forward(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The fallback of ``kernelwright::attention``: O, and LSE, empty if not requested."""
    a = ATTENTION.arguments(given)
    rules = Rules.of(a)
    causal = a.mask == "top_left" and (a.window_left, a.window_right) == (-1, 0)
    plain = a.slopes is None and a.sinks is None and not a.soft_cap and not a.dropout_p
    with torch.no_grad():
        if a.with_lse or not plain or (a.mask != "none" and (not causal or a.bias is not None)):
            out, lse = with_lse(Operands(a.q, a.k, a.v, a.bias, a.slopes, a.sinks, a.seed), rules)
            return out, lse if a.with_lse else lse.new_empty(0)
        shared = a.k.shape[1] != a.q.shape[1]
        out = _TORCHS(a.q, a.k, a.v, a.bias, 0.0, causal, scale=a.scale, enable_gqa=shared)
    return out, a.q.new_empty(0, dtype=torch.float32)


def backward(*given: Any) -> tuple[torch.Tensor, ...]:
    """The fallback of ``kernelwright::attention_backward``."""
    a = ATTENTION_BACKWARD.arguments(given)
    with torch.no_grad():
        operands = Operands(a.q, a.k, a.v, a.bias, a.slopes, None, a.seed)
        *grads, dbias = gradients(operands, Rules.of(a), a.out, a.grad, a.lse, a.with_dbias)
    return *grads, dbias if dbias is not None else (a.q if a.bias is None else a.bias).new_empty(0)


def public(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, enable_gqa: bool, *_: Any,
) -> torch.Tensor:  # fmt: skip
    """The fallback of :func:`kernelwright.torch.scaled_dot_product_attention` with arguments that torch's own takes.

    For forward-mode derivatives torch computes it by products: its fused kernels have no such derivative.
    """
    by_products = forward_ad._current_level >= 0
    with sdpa_kernel(SDPBackend.MATH) if by_products else contextlib.nullcontext():
        return _TORCHS(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
