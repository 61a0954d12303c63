"""Requests of different lengths: ragged.py [--library DIR].

All rows stand one behind the other (group mode), or K and V have room for the longest, and numbers say how many count.
"""

from __future__ import annotations

import numpy as np
from common import by_numpy, causal, check, drawn, example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Both ways, compared with NumPy request by request."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    queries, keys = [5, 17, 1], [9, 17, 40]
    rows, columns = (np.array([0, *np.cumsum(lengths)], np.int32) for lengths in (queries, keys))
    q, k, v = drawn(0, rows[-1], 4, 64), drawn(1, columns[-1], 2, 64), drawn(2, columns[-1], 2, 64)
    out, lse = dispatcher.attention(
        q, k, v, mask="bottom_right", lse=True, cu_seqlens_q=rows, cu_seqlens_k=columns,
        max_seqlen_q=max(queries), max_seqlen_k=max(keys),
    )  # fmt: skip
    for b, (n, m) in enumerate(zip(queries, keys, strict=True)):
        own, seen = slice(rows[b], rows[b + 1]), slice(columns[b], columns[b + 1])
        check(out[own], by_numpy(q[own], k[seen], v[seen], added=causal(n, m)), f"request {b}: {n} queries, {m} keys")
    assert lse.shape == (4, rows[-1])

    q, k, v = drawn(3, 3, 2, 4, 64), drawn(4, 3, 40, 2, 64), drawn(5, 3, 40, 2, 64)
    out = dispatcher.attention(q, k, v, seqlens_k=np.array(keys, np.int32))
    for b, m in enumerate(keys):
        check(out[b], by_numpy(q[b], k[b, :m], v[b, :m]), f"request {b}: {m} of 40 keys count")


if __name__ == "__main__":
    main()
