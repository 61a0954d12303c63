"""decode(), prefill() and append_kv() on naive kernels: caches in pages of both kinds of tables, and contiguous."""

from __future__ import annotations

import numpy as np
import pytest

from attention.runtime.caches import check_append, check_decode, check_prefill
from kernelwright.dispatch import ArrayError, Dispatcher


@pytest.mark.parametrize("splits", [0, 1, 3])
@pytest.mark.parametrize("kind", ["block", "list"])
@pytest.mark.parametrize(("queries", "window"), [(1, None), (3, None), (2, (20, 0))])
def test_decode_out_of_pages(
    naive: Dispatcher, kind: str, queries: int, window: tuple[int, int] | None, splits: int
) -> None:
    check_decode(naive, kind, queries, window, splits)


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("kind", ["block", "list"])
def test_prefill_of_ragged_requests(naive: Dispatcher, kind: str, page_size: int) -> None:
    check_prefill(naive, kind, page_size, soft_cap=2.0)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("where", ["pages", "contiguous", "side by side"])
def test_append_with_rotary_embedding(naive: Dispatcher, where: str, interleaved: bool) -> None:
    check_append(naive, where, interleaved)


def test_appending_without_rotary_embedding_copies(naive: Dispatcher) -> None:
    cache = np.zeros((2, 2, 5, 1, 8), np.float32)
    new = np.ones((2, 2, 1, 8), np.float32)
    assert naive.append_kv(new, 2 * new, cache[0], cache[1], np.array([0, 3], np.int32)) is None
    assert cache[0].sum() == 2 * 2 * 8 and cache[1].sum() == 2 * 2 * 2 * 8
    assert (cache[0, 1, 3:] == 1).all() and (cache[0, 0, :2] == 1).all()
    with pytest.raises(ArrayError, match=r"cos and sin belong together"):
        naive.append_kv(new, new, cache[0], cache[1], np.array([0, 3], np.int32), q=new)
