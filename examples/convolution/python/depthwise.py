"""One channel per group, with channels innermost and with images as planes: depthwise.py [--library DIR]."""

from __future__ import annotations

import numpy as np
from shared import by_numpy, example_parser, open_library

from kernelwright.dispatch import ConvProblem, Dispatcher, NoKernelError


def main(arguments: list[str] | None = None) -> None:
    """Filter each channel by itself in both layouts."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (2, 16, 18, 48)).astype(np.float32)
    w = rng.integers(-2, 3, (48, 5, 5, 1)).astype(np.float32)
    expected = by_numpy(x, w, 2, 2, 48)

    y = dispatcher.conv_forward(x, w, stride=2, padding=2, groups=48)
    assert np.array_equal(y, expected)
    print(f"nhwgc: {y.shape}, exact")

    planes, filters = np.moveaxis(x, -1, 1).copy(), np.moveaxis(w, -1, 1).copy()
    y = dispatcher.conv_forward(planes, filters, stride=2, padding=2, groups=48, layout="ngchw")
    assert np.array_equal(np.moveaxis(y, 1, -1), expected)
    print(f"ngchw: {y.shape}, exact")

    problem = ConvProblem("forward", 2, 48, 48, (16, 18), 5, groups=24, layout="ngchw")
    try:
        dispatcher.select(problem)
    except NoKernelError as error:
        assert "one channel in and out per group" in str(error)
        print("planes with two channels per group have no kernel")


if __name__ == "__main__":
    main()
