"""Attention of requests of different lengths, computed by torch's own operators one request at a time.

The lengths are read on the host, which waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from kernelwright.torch.fallback.attentions import Operands, Rules, gradients, with_lse
from kernelwright.torch.fallback.decisions import NotInTorchError
from kernelwright.torch.schemas import VARLEN, VARLEN_BACKWARD


class _Request(NamedTuple):
    queries: slice
    keys: slice
    given: Operands


def _requests(a: Any, sinks: torch.Tensor | None, rules: Rules) -> Iterator[_Request]:
    if rules.dropout_p > 0:  # positions of random numbers follow from all requests
        raise NotInTorchError("torch drops other probabilities of requests of different lengths than kernels do")
    first_q, first_k = a.cu_q.tolist(), a.cu_k.tolist()
    used = a.seqused_k.tolist() if a.seqused_k is not None else None
    for number in range(len(first_q) - 1):
        queries = slice(first_q[number], first_q[number + 1])
        last = first_k[number + 1] if used is None else first_k[number] + used[number]
        keys = slice(first_k[number], last)
        own = a.slopes[number] if a.slopes is not None and a.slopes.dim() == 2 else a.slopes
        one_q, one_k, one_v = (one.transpose(0, 1)[None] for one in (a.q[queries], a.k[keys], a.v[keys]))
        yield _Request(queries, keys, Operands(one_q, one_k, one_v, None, own, sinks, None))


def forward(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The fallback of ``kernelwright::attention_varlen``."""
    a = VARLEN.arguments(given)
    q, rules = a.q, Rules.of(a)
    out, lse = q.new_zeros(*q.shape[:2], a.v.shape[-1]), q.new_zeros(q.shape[1::-1], dtype=torch.float32)
    with torch.no_grad():
        for one in _requests(a, a.sinks, rules):
            part, sums = with_lse(one.given, rules)
            out[one.queries], lse[:, one.queries] = part[0].transpose(0, 1), sums[0]
    return out, lse if a.with_lse else lse.new_empty(0)


def backward(*given: Any) -> tuple[torch.Tensor, ...]:
    """The fallback of ``kernelwright::attention_varlen_backward``."""
    a = VARLEN_BACKWARD.arguments(given)
    rules = Rules.of(a)
    dq, dk, dv = (torch.zeros(one.shape, dtype=one.dtype, device=one.device) for one in (a.q, a.k, a.v))
    with torch.no_grad():
        for one in _requests(a, None, rules):
            o, do = (part[one.queries].transpose(0, 1)[None] for part in (a.out, a.grad))
            grads = gradients(one.given, rules, o, do, a.lse[None, :, one.queries], False)
            for whole, part, at in zip((dq, dk, dv), grads, (one.queries, one.keys, one.keys), strict=False):
                whole[at] = part[0].transpose(0, 1)
    return dq, dk, dv
