"""Attention of requests of different lengths by torch's own operators: one request after the other.

The lengths are read on the host, which waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.torch.fallback.attentions import Operands, Rules, gradients, with_lse
from kernelwright.torch.fallback.decisions import NotInTorchError


class _Request(NamedTuple):
    queries: slice
    keys: slice
    given: Operands


def _requests(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor,
    seqused_k: torch.Tensor | None, slopes: torch.Tensor | None, sinks: torch.Tensor | None, rules: Rules,
) -> Iterator[_Request]:  # fmt: skip
    if rules.dropout_p > 0:  # places of random numbers follow from all requests
        raise NotInTorchError("torch drops other probabilities of requests of different lengths than kernels do")
    first_q, first_k = cu_q.tolist(), cu_k.tolist()
    used = seqused_k.tolist() if seqused_k is not None else None
    for number in range(len(first_q) - 1):
        queries = slice(first_q[number], first_q[number + 1])
        last = first_k[number + 1] if used is None else first_k[number] + used[number]
        keys = slice(first_k[number], last)
        own = slopes[number] if slopes is not None and slopes.dim() == 2 else slopes
        one_q, one_k, one_v = (one.transpose(0, 1)[None] for one in (q[queries], k[keys], v[keys]))
        yield _Request(queries, keys, Operands(one_q, one_k, one_v, None, own, sinks, None))


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int,
    seqused_k: torch.Tensor | None, slopes: torch.Tensor | None, sinks: torch.Tensor | None, seed: torch.Tensor | None,
    mask: str = "none", window_left: int = -1, window_right: int = -1, scale: float | None = None,
    soft_cap: float = 0.0, dropout_p: float = 0.0, lse_wanted: bool = True, *_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """For ``kernelwright::attention_varlen``."""
    rules = Rules(mask, window_left, window_right, scale, soft_cap, dropout_p)
    out, lse = q.new_zeros(*q.shape[:2], v.shape[-1]), q.new_zeros(q.shape[1::-1], dtype=torch.float32)
    with torch.no_grad():
        for one in _requests(q, k, v, cu_q, cu_k, seqused_k, slopes, sinks, rules):
            part, sums = with_lse(one.given, rules)
            out[one.queries], lse[:, one.queries] = part[0].transpose(0, 1), sums[0]
    return out, lse if lse_wanted else lse.new_empty(0)


def backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, grad: torch.Tensor, lse: torch.Tensor,
    cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int, seqused_k: torch.Tensor | None,
    slopes: torch.Tensor | None, seed: torch.Tensor | None, mask: str = "none", window_left: int = -1,
    window_right: int = -1, scale: float | None = None, soft_cap: float = 0.0, dropout_p: float = 0.0, *_: Any,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """For ``kernelwright::attention_varlen_backward``."""
    rules = Rules(mask, window_left, window_right, scale, soft_cap, dropout_p)
    dq, dk, dv = (torch.zeros(one.shape, dtype=one.dtype, device=one.device) for one in (q, k, v))
    with torch.no_grad():
        for one in _requests(q, k, v, cu_q, cu_k, seqused_k, slopes, None, rules):
            o, do = (part[one.queries].transpose(0, 1)[None] for part in (out, grad))
            grads = gradients(one.given, rules, o, do, lse[None, :, one.queries], False)
            for whole, part, at in zip((dq, dk, dv), grads, (one.queries, one.keys, one.keys), strict=False):
                whole[at] = part[0].transpose(0, 1)
    return dq, dk, dv
