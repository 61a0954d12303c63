"""Attention of a batch: basic.py [--library DIR].

Heads of Q share those of K and V; with and without a causal mask; LSE; arrays in either order; caller-provided memory.
"""

from __future__ import annotations

import numpy as np
from common import by_numpy, causal, check, drawn, example_parser, open_library

from kernelwright.dispatch import AttentionProblem, Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Compute, compare with NumPy, and show the plan."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    q, k, v = drawn(0, 2, 50, 8, 64), drawn(1, 2, 70, 2, 64), drawn(2, 2, 70, 2, 64)  # request, row, head, d

    out = dispatcher.attention(q, k, v)
    check(out[1], by_numpy(q[1], k[1], v[1]), "full")
    out, lse = dispatcher.attention(q, k, v, mask="bottom_right", lse=True)
    check(out[0], by_numpy(q[0], k[0], v[0], added=causal(50, 70)), "causal")
    assert lse.shape == (2, 8, 50)

    heads_first = [np.ascontiguousarray(each.transpose(0, 2, 1, 3)) for each in (q, k, v)]
    again = np.empty((2, 8, 50, 64), np.float32)
    assert dispatcher.attention(*heads_first, again, mask="bottom_right", layout="bhsd") is again
    check(again.transpose(0, 2, 1, 3), out, "heads before rows")

    # A plan is made once; bound to memory, it is the shortest call.
    problem = AttentionProblem("forward", 2, 8, 2, 50, 70, 64, dtype="fp32", mask="bottom_right")
    plan = dispatcher.plan(problem)
    bound = plan.bind(q=q, k=k, v=v, o=out)
    assert bound() is out
    print(f"{problem}: {plan.kernel.name}, {plan.choices}, {problem.flops / 1e6:.1f} MFLOP")
    print(str(dispatcher.explain(problem)).splitlines()[0])


if __name__ == "__main__":
    main()
