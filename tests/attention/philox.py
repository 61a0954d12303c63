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
