"""One multiplication: basic.py [--library DIR].

DIR holds <arch>/manifest.json; left out, the library comes out of an installed kernelwright-kernels-gemm wheel.
"""

from __future__ import annotations

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem


def main(arguments: list[str] | None = None) -> None:
    """Multiply, say which kernel did it, compare with NumPy."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    a = rng.standard_normal((300, 200), dtype=np.float32)
    b = rng.standard_normal((200, 100), dtype=np.float32)
    d = dispatcher.gemm(a, b)

    selection = dispatcher.select(GemmProblem.from_arrays(a, b))
    print(f"{selection.kernel.name}: {selection.reason}")
    np.testing.assert_allclose(d, a @ b, rtol=1e-4, atol=1e-4)
    print("equal to NumPy's result within 1e-4")

    # alpha * a @ b + beta * c into memory of one's own; a transposed view is a column-major matrix, nothing is copied.
    c = rng.standard_normal((300, 100), dtype=np.float32)
    out = np.empty_like(c)
    dispatcher.gemm(a, b.T.copy().T, c, out, alpha=2.0, beta=-1.0)
    np.testing.assert_allclose(out, 2 * (a @ b) - c, rtol=1e-4, atol=1e-3)
    print("with alpha and beta too")


if __name__ == "__main__":
    main()
