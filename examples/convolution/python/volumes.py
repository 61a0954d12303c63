"""Convolutions of one and three dimensions, with padding of each side of its own: volumes.py [--library DIR]."""

from __future__ import annotations

import numpy as np
from shared import by_numpy, example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """A video, a signal that must not see its future, and their gradients."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))
    rng = np.random.default_rng(0)

    video = rng.integers(-2, 3, (1, 6, 12, 10, 8)).astype(np.float32)  # images, time, height, width, channels
    w = rng.integers(-2, 3, (16, 3, 3, 3, 8)).astype(np.float32)
    y = dispatcher.conv_forward(video, w, padding=(1, 0, 0))
    assert np.array_equal(y, by_numpy(video, w, padding=(1, 0, 0)))
    dw = dispatcher.conv_backward_weight(video, y, filter=(3, 3, 3), padding=(1, 0, 0))
    assert (dw * w).sum(dtype=float) == (y.astype(float) ** 2).sum()
    print(f"3D: {y.shape}, exact")

    signal = rng.integers(-2, 3, (2, 50, 8)).astype(np.float32)
    w = rng.integers(-2, 3, (4, 3, 8)).astype(np.float32)
    causal = dispatcher.conv_forward(signal, w, dilation=2, padding=[(4, 0)])  # four points of zeros in front
    shorter = dispatcher.conv_forward(signal[:, :25].copy(), w, dilation=2, padding=[(4, 0)])
    assert causal.shape == (2, 50, 4) and np.array_equal(causal[:, :25], shorter)
    print("1D: later points change no earlier result")


if __name__ == "__main__":
    main()
