"""Weights in the order that a kernel reads, made once: preshuffle.py [--library DIR].

DIR holds <arch>/manifest.json; left out, an installed wheel is used.
"""

from __future__ import annotations

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem


def main(arguments: list[str] | None = None) -> None:
    """Shuffle a weight matrix, multiply with it many times, compare with NumPy."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    weight = rng.integers(-3, 4, (96, 128)).astype(np.float32)  # (n, k), as layers keep it
    shuffled = dispatcher.shuffle_b(weight.T, m=32)  # m: the rows that are expected
    for m in (1, 32, 57):
        x = rng.integers(-3, 4, (m, 128)).astype(np.float32)
        assert np.array_equal(dispatcher.gemm(x, shuffled), x @ weight.T)

    problem = GemmProblem.from_arrays(x, shuffled)
    print(f"{problem}: {dispatcher.select(problem).kernel.name}")
    print(f"{shuffled.data.nbytes} bytes for {weight.nbytes}, all products exact")


if __name__ == "__main__":
    main()
