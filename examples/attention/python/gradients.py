"""Gradients of Q, K, V and a bias: gradients.py [--library DIR].

They are compared with differences of the loss sum(out * weights) along random directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import by_numpy, causal, drawn, example_parser, open_library

from kernelwright.dispatch import Dispatcher

STEP = 1e-4


def main(arguments: list[str] | None = None) -> None:
    """Three kernels run one behind the other: row sums of dO * O, dK and dV with sums of dQ, dQ."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    given = {"q": drawn(0, 1, 30, 4, 32), "k": drawn(1, 1, 45, 2, 32), "v": drawn(2, 1, 45, 2, 32)}
    given["bias"] = drawn(3, 1, 4, 30, 45)
    weights = drawn(4, 1, 30, 4, 32)
    options: dict[str, Any] = {"mask": "bottom_right", "bias": given["bias"]}
    out, lse = dispatcher.attention(given["q"], given["k"], given["v"], lse=True, **options)
    gradients = dispatcher.attention_backward(
        given["q"], given["k"], given["v"], out, weights, lse, dbias=True, deterministic=True, **options
    )

    def loss(changed: dict[str, Any]) -> float:
        added = changed["bias"][0] + causal(30, 45)
        parts = (changed[name][0].astype(np.float64) for name in "qkv")
        return float((by_numpy(*parts, added=added) * weights[0]).sum())

    for name, gradient in zip(given, gradients, strict=True):
        direction = drawn(9, *gradient.shape).astype(np.float64)
        ends = [loss({**given, name: given[name] + sign * STEP * direction}) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * STEP)
        along = float((gradient * direction).sum())
        if not abs(along - slope) < 1e-3 * max(1.0, abs(slope)):
            raise SystemExit(f"d{name}: {along}, differences say {slope}")
        print(f"d{name} along a random direction: {along:.4f}, by differences {slope:.4f}")


if __name__ == "__main__":
    main()
