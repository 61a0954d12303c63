"""What follows a product, in the same kernel: multi_d.py [--library DIR].

GELU(x·Wᵀ + bias), and GELU(x·Wᵀ + r) with a whole matrix r. Without such kernels, each step would read and write the
whole result again. DIR holds <arch>/manifest.json; left out, an installed wheel is used.
"""

from __future__ import annotations

import math

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem


def main(arguments: list[str] | None = None) -> None:
    """Compute both and compare with NumPy."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((50, 96), dtype=np.float32), rng.standard_normal((64, 96), dtype=np.float32)
    bias, matrix = rng.standard_normal(64, dtype=np.float32), rng.standard_normal((50, 64), dtype=np.float32)
    for d in (bias, matrix):  # n values are one row for all
        y = dispatcher.gemm(x, weight.T, ds=[d], activation="gelu")
        before = x.astype(np.float64) @ weight.T + d
        np.testing.assert_allclose(y, before / 2 * (1 + np.vectorize(math.erf)(before / math.sqrt(2))), atol=1e-4)

    problem = GemmProblem.from_arrays(x, weight.T, ds=[bias], activation="gelu")
    print(f"{problem}: {dispatcher.select(problem).kernel.name}")
    print("both equal to NumPy's results within 1e-4")


if __name__ == "__main__":
    main()
