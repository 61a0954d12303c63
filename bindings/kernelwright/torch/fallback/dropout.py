"""The probabilities that kernels keep in dropout, as the C ABI defines them, computed by torch's operators.

So a kernel's gradient drops the probabilities that torch dropped in the forward pass, and vice versa. Source:
kw_attention_keeps in ``kernelwright/attention/checks.h``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError

_LOW = 0xFFFFFFFF


def _product(factor: int, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and lower 32 bits of products of 32-bit numbers; int64 wraps around and keeps all 64 bits."""
    # A factor above 2^31 as a signed 64-bit number is exact; so is the sum modulo 2^64.
    product = words * factor
    return product >> 32 & _LOW, product & _LOW


def _philox(counter: Sequence[torch.Tensor], key: int) -> list[torch.Tensor]:
    c0, c1, c2, c3 = counter
    k0, k1 = key & _LOW, key >> 32 & _LOW
    for _ in range(7):
        (a_high, a_low), (b_high, b_low) = _product(0xD2511F53, c0), _product(0xCD9E8D57, c2)
        c0, c1, c2, c3 = b_high ^ c1 ^ k0, b_low, a_high ^ c3 ^ k1, a_low
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return [c0, c1, c2, c3]


def kept(
    seed: torch.Tensor | None, share: float, rows: slice, shape: Sequence[int], device: torch.device
) -> torch.Tensor:
    """1 where a probability is kept and 0 where it is dropped, fp32 (batch, heads, rows, keys).

    :param rows: the queries of one request.
    :param share: the fraction dropped, below 1.
    """
    if seed is None:
        raise ArrayError("dropout_p is above 0 and seed is None; pass two int64 numbers, seed and offset")
    key, offset = (int(number) for number in seed.tolist())
    batch, heads, _, keys = shape
    i = torch.arange(rows.start, rows.stop, device=device)[:, None]
    j = torch.arange(keys, device=device)[None, :]
    head = torch.arange(batch * heads, device=device).view(batch, heads, 1, 1)
    place = offset + 64 * head + j % 32 + 32 * (i // 8 % 2)
    counter = torch.broadcast_tensors(place & _LOW, place >> 32 & _LOW, i // 32, j // 32)
    words = torch.stack(_philox(counter, key))
    number = (8 * (i // 16 % 2) + i % 8).expand(i.shape[0], keys)
    word = words.gather(0, (number // 4).expand(1, *words.shape[1:]))[0]
    byte = word >> 8 * (number % 4) & 0xFF
    keeps = int(torch.tensor(1.0 - share, dtype=torch.float32) * 255)
    return (byte <= keeps).float()
