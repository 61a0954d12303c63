"""One convolution, then bias, residual and activation in the same kernel: basic.py [--library DIR].

DIR holds <arch>/manifest.json; left out, the library comes out of an installed kernelwright-kernels-convolution wheel.
"""

from __future__ import annotations

import numpy as np
from shared import by_numpy, example_parser, open_library

from kernelwright.dispatch import ConvProblem, Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Convolve images, say which kernel did it, compare with NumPy."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 28, 30, 32), dtype=np.float32)  # images, height, width, channels
    w = rng.standard_normal((64, 3, 3, 32), dtype=np.float32)  # channels out, filter points, channels in
    y = dispatcher.conv_forward(x, w, padding=1)

    problem = ConvProblem("forward", n=4, c=32, k=64, size=(28, 30), filter=3, pad_left=1)
    selection = dispatcher.select(problem)
    print(f"{problem}: {selection.kernel.name}, {selection.reason}")
    expected = by_numpy(x, w, padding=1)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-3)
    print("equal to NumPy's result within 1e-3")

    bias = rng.standard_normal(64, dtype=np.float32)
    out = np.empty_like(y)
    dispatcher.conv_forward(x, w, out, padding=1, bias=bias, residual=y, activation="relu")  # one kernel
    np.testing.assert_allclose(out, np.maximum(expected + bias + y, 0), rtol=1e-4, atol=1e-3)
    print("with bias, residual and relu too")


if __name__ == "__main__":
    main()
