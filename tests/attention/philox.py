"""Random bytes of dropout: Philox4x32, and which of its bytes CK Tile takes for which probability.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox(counter: Array, key: int, rounds: int = 7) -> Array:
    """Four 32-bit numbers for each row of four 32-bit numbers of ``counter``, with a 64-bit key."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF
    for _ in range(rounds):
        a, b = np.uint64(_M0) * c0, np.uint64(_M1) * c2
        c0, c1, c2, c3 = b >> _SHIFT ^ c1 ^ np.uint64(k0), b & _LOW, a >> _SHIFT ^ c3 ^ np.uint64(k1), a & _LOW
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], -1).astype(np.uint32)


def random_bytes(shape: tuple[int, int, int, int], seed: int, offset: int) -> Array:
    """The bytes that CK Tile compares with the share it keeps, for requests x heads x queries x keys.

    Each tile of 32 x 32 probabilities takes one subsequence, numbered by its place among the tiles; its 64 lanes draw
    16 bytes each, for 16 queries of one key (block_dropout.hpp). The pattern does not depend on the kernel's tiles, so
    that forward and backward kernels agree.
    """
    requests, heads, queries, keys = shape
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    m, n = i % 32, j % 32
    lane = n + 32 * (m // 8 % 2)
    drawn = m // 16 * 8 + m % 8  # which of the lane's bytes
    head = np.arange(requests * heads).reshape(requests, heads, 1, 1)
    place = offset + 64 * head + lane
    numbers = np.broadcast_arrays(place & 0xFFFFFFFF, place >> 32, np.broadcast_to(i // 32, shape), j // 32)
    words = philox(np.stack(numbers, -1).astype(np.uint32), seed)
    word = np.take_along_axis(words, np.broadcast_to(drawn // 4, shape)[..., None], -1)[..., 0]
    chosen: Array = (word >> (8 * (drawn % 4)).astype(np.uint32)).astype(np.uint8)
    return chosen
