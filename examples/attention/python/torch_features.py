"""What torch's own function has no argument for, with gradients: torch_features.py [--library DIR].

Sliding windows, sinks, soft caps, ALiBi, dropout by a seed, requests of different lengths; 8-bit operands, without
gradients.
"""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from common import example_parser, open_library

import kernelwright.torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher
from kernelwright.torch import scaled_dot_product_attention, varlen_attn  # pants: no-infer-dep


def by_torch(q: Any, k: Any, v: Any, *, added: Any = 0.0, cap: float = 0.0, sinks: Any = None) -> Any:
    """The same by torch's elementwise operators; q, k and v (…, heads, rows, d), ``added`` to the scores."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    scores = (cap * torch.tanh(scores / cap) if cap else scores) + added
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:-1], 1)], -1)
    weights = scores.softmax(-1)
    return (weights if sinks is None else weights[..., :-1]) @ v


def check(computed: Any, wanted: Any, operands: tuple[Any, ...], what: str) -> None:
    """Compare results and gradients of a weighted sum."""
    weights = torch.randn_like(wanted)
    for one, other in zip(
        (computed, *torch.autograd.grad(computed, operands, weights)),
        (wanted, *torch.autograd.grad(wanted, operands, weights)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    print(f"{what}: as torch, and its gradients")


def main(arguments: list[str] | None = None) -> None:
    """One call for each feature."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    kernelwright.torch.use(dispatcher)
    torch.manual_seed(0)
    qkv = q, k, v = tuple(torch.randn(2, 4, 40, 32, requires_grad=True) for _ in range(3))
    sinks, slopes = torch.randn(4, requires_grad=True), torch.tensor([0.25, 0.125, 0.0625, 0.03125])
    distance = torch.arange(40)[:, None] - torch.arange(40)[None, :]

    hidden = torch.zeros(40, 40).masked_fill((distance < 0) | (distance > 15), -torch.inf)
    attended = scaled_dot_product_attention(*qkv, mask="bottom_right", window=(15, 0), sinks=sinks)
    check(attended, by_torch(*qkv, added=hidden, sinks=sinks), (*qkv, sinks), "the last 16 keys and sinks")
    check(scaled_dot_product_attention(*qkv, soft_cap=2.0), by_torch(*qkv, cap=2.0), qkv, "a soft cap")
    far = -slopes[:, None, None] * distance.abs()
    check(scaled_dot_product_attention(*qkv, alibi_slopes=slopes), by_torch(*qkv, added=far), qkv, "ALiBi")

    seed = torch.tensor([7, 0])
    attended = scaled_dot_product_attention(*qkv, dropout_p=0.5, seed=seed)
    assert attended.equal(scaled_dot_product_attention(*qkv, dropout_p=0.5, seed=seed))
    units = torch.eye(40).expand(2, 4, 40, 40)  # as V they show which probabilities are kept
    kept = scaled_dot_product_attention(q, k, units, dropout_p=0.5, seed=seed) > 0
    weights = (q @ k.mT * 32**-0.5).softmax(-1)
    check(attended, torch.where(kept, weights * 2, 0) @ v, qkv, "dropout")

    lengths = [9, 1, 30]
    first = torch.tensor([0, 9, 10, 40], dtype=torch.int32)
    ragged = tuple(one.detach()[0].transpose(0, 1).contiguous().requires_grad_() for one in qkv)  # (rows, heads, d)
    attended = varlen_attn(*ragged, first, first, max(lengths), max(lengths), window_size=(-1, 0))
    requests = zip(*(one.transpose(0, 1).split(lengths, 1) for one in ragged), strict=True)
    causal = [torch.full((n, n), -torch.inf).triu(1) for n in lengths]
    wanted = [by_torch(*one, added=mask) for one, mask in zip(requests, causal, strict=True)]
    check(attended, torch.cat(wanted, 1).transpose(0, 1), ragged, "causal requests of different lengths")

    # Each tensor has one factor, by which its 8-bit numbers are multiplied.
    factors = [one.detach().abs().max() / 448 for one in qkv]
    narrow = [(one.detach() / factor).to(torch.float8_e4m3fn) for one, factor in zip(qkv, factors, strict=True)]
    descale = tuple(factor.reshape(1) for factor in factors)
    out = dispatcher.attention(*narrow, descale=descale, dtype="bf16", layout="bhsd")
    wanted = by_torch(*(one.float() * factor for one, factor in zip(narrow, factors, strict=True)))
    torch.testing.assert_close(out.float(), wanted, atol=2e-2, rtol=2e-2)
    print("8-bit operands: as torch with the same numbers")


if __name__ == "__main__":
    main()
