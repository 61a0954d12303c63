"""Forward, backward data and backward weight of grouped convolutions with strides: directions.py [--library DIR]."""

from __future__ import annotations

import numpy as np
from shared import by_numpy, example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Compute y, dx and dw of small whole numbers, whose sums are exact."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))
    rng = np.random.default_rng(0)
    shapes = (2, 15, 14, 24), (16, 3, 3, 6), (2, 8, 7, 16)
    x, w, dy = (rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes)
    window = {"stride": 2, "padding": 1, "groups": 4}

    y = dispatcher.conv_forward(x, w, **window)
    dx = dispatcher.conv_backward_data(dy, w, size=(15, 14), **window)
    dw = dispatcher.conv_backward_weight(x, dy, filter=3, **window)

    assert np.array_equal(y, by_numpy(x, w, **window))
    # What gradients mean: <dy, y> changes with x by <dx, change>, and with w by <dw, change>. Both are linear.
    along_x, along_w = (rng.integers(-2, 3, one.shape).astype(np.float32) for one in (x, w))
    assert (dx * along_x).sum(dtype=float) == (dy * by_numpy(along_x, w, **window)).sum(dtype=float)
    assert (dw * along_w).sum(dtype=float) == (dy * by_numpy(x, along_w, **window)).sum(dtype=float)
    print(f"y {y.shape}, dx {dx.shape}, dw {dw.shape}: exact")

    total = dispatcher.conv_backward_weight(x, dy, 3, dw.copy(), beta=1.0, **window)  # added to what is there
    assert np.array_equal(total, 2 * dw)
    print("gradients add up in place")


if __name__ == "__main__":
    main()
