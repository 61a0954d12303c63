"""Products of different shapes in one launch, and a batch of equal ones: grouped.py [--library DIR].

Experts of a mixture get as many rows as the router gave them, some none. DIR holds <arch>/manifest.json; left out, an
installed wheel is used.
"""

from __future__ import annotations

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Multiply rows with the weights of their expert, and a batch, and compare exactly."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    rows = [17, 0, 64, 3]  # for each expert
    tokens = rng.integers(-3, 4, (sum(rows), 48)).astype(np.float32)
    experts = rng.integers(-3, 4, (len(rows), 40, 48)).astype(np.float32)  # (n, k) each, as layers keep weights
    ends = np.cumsum(rows)
    parts = [tokens[end - count : end] for end, count in zip(ends, rows, strict=True)]  # views: nothing is copied
    out = np.empty((sum(rows), 40), np.float32)
    outs = [out[end - count : end] for end, count in zip(ends, rows, strict=True)]
    dispatcher.grouped_gemm(parts, [expert.T for expert in experts], outs)
    assert np.array_equal(out, np.concatenate([part @ expert.T for part, expert in zip(parts, experts, strict=True)]))
    print(f"{len(rows)} groups of {rows} rows, all exact")

    queries, keys = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 20, 32), (8, 24, 32)))
    scores = queries @ keys.swapaxes(1, 2)
    assert np.array_equal(dispatcher.gemm(queries, keys.swapaxes(1, 2)), scores)
    assert np.array_equal(dispatcher.gemm(queries, keys[0].T), queries @ keys[0].T)  # shared by all
    print("a batch of 8, exact")


if __name__ == "__main__":
    main()
