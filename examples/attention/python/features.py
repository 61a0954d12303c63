"""What is done to the scores: features.py [--library DIR].

Sliding windows, an elementwise bias, ALiBi, a soft cap, sinks, dropout.
"""

from __future__ import annotations

import numpy as np
from common import by_numpy, causal, check, drawn, example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """One call for each feature, compared with NumPy."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    q, k, v = drawn(0, 1, 40, 4, 32), drawn(1, 1, 60, 4, 32), drawn(2, 1, 60, 4, 32)
    one = q[0], k[0], v[0]

    out = dispatcher.attention(q, k, v, mask="bottom_right", window=(15, 0))
    check(out[0], by_numpy(*one, added=causal(40, 60, 15)), "the last 16 keys")

    bias = drawn(3, 1, 1, 40, 60)  # one matrix for all heads
    check(dispatcher.attention(q, k, v, bias=bias)[0], by_numpy(*one, added=bias[0]), "bias")

    slopes = 2.0 ** -np.arange(2, 10, 2, dtype=np.float32)
    distance = np.abs(np.arange(40)[:, None] + 20 - np.arange(60)[None, :])
    out = dispatcher.attention(q, k, v, alibi_slopes=slopes)
    check(out[0], by_numpy(*one, added=-slopes[:, None, None] * distance), "ALiBi")

    check(dispatcher.attention(q, k, v, soft_cap=2.0)[0], by_numpy(*one, cap=2.0), "soft cap")

    sinks = drawn(4, 4)
    out, lse = dispatcher.attention(q, k, v, sinks=sinks, lse=True)
    plain, plain_lse = dispatcher.attention(q, k, v, lse=True)
    share = np.exp(plain_lse - np.logaddexp(plain_lse, sinks[:, None]))  # what the sink leaves to the keys
    check(out[0], plain[0] * share[0].T[..., None], "sinks")
    check(lse, np.logaddexp(plain_lse, sinks[:, None]), "LSE with sinks")

    given = {"dropout_p": 0.5, "seed": 7}
    same = [dispatcher.attention(q, k, v, **given) for _ in range(2)]
    check(same[0], same[1], "dropout with the same seed twice")
    mean = np.mean([dispatcher.attention(q, k, v, dropout_p=0.5, seed=seed) for seed in range(400)], axis=0)
    assert np.abs(mean - plain).mean() < 0.05
    print("dropout keeps the mean")


if __name__ == "__main__":
    main()
