"""Arrays of 32-bit words, as registers and memories hold them: aligned views, read-modify-write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.errors import Trap

Words = NDArray[np.uint32]
# (old contents (dwords, k), their lanes (k,)) → new contents (dwords, k)
Update = Callable[[Words, NDArray[np.int64]], Words]

POISON = 0x7FC1_DEAD  # content of unwritten memory and registers; a NaN as fp32, a huge number as an address
STEPS = [np.arange(dwords, dtype=np.int64)[:, None] for dwords in range(5)]  # row offsets of an access, by its dwords
any_bits = np.bitwise_or.reduce


def wide_views(words: Words) -> dict[int, NDArray[Any]]:
    """Views of two and four dwords, as elements that NumPy copies at once (numbers, but only their bits matter)."""
    kinds: tuple[tuple[int, Any], ...] = ((2, np.uint64), (4, np.complex128))
    return {dwords: words[: words.size // dwords * dwords].view(kind) for dwords, kind in kinds}


def take_wide(elements: NDArray[Any], offsets: NDArray[np.int64], dwords: int) -> Words:
    """(n,) byte offsets, multiples of the elements' size → (dwords, n). Raises IndexError for those outside."""
    words: Words = elements[offsets >> (3 if dwords == 2 else 4)].view(np.uint32)
    return words.reshape(-1, dwords).T


def check_aligned(addresses: NDArray[np.uint64] | NDArray[np.int64], dwords: int) -> None:
    """Trap unless all addresses are multiples of the size of an atomic."""
    wrong = addresses & addresses.dtype.type(4 * dwords - 1)
    if wrong.any():
        raise Trap(f"an atomic of {4 * dwords} bytes is not aligned", int(addresses[wrong.argmax()]))


def modify(words: Words, index: NDArray[np.int64], dwords: int, lanes: NDArray[np.int64], update: Update) -> Words:
    """Apply ``update`` to ``words`` at (n,) dword indices, in lane order. Returns the old contents (dwords, n).

    Lanes that share an index take turns: turn t does the t-th lane of each index.
    """
    before = np.empty((dwords, len(index)), np.uint32)
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    heads = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    turn = np.empty(len(index), np.int64)
    turn[order] = np.arange(len(index)) - np.repeat(heads, np.diff(np.r_[heads, len(index)]))
    for now in range(int(turn.max()) + 1):
        chosen = np.flatnonzero(turn == now)
        where = index[chosen] + STEPS[dwords]
        before[:, chosen] = words[where]
        words[where] = update(before[:, chosen], lanes[chosen])
    return before
