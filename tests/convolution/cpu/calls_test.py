"""``Dispatcher.conv_forward`` and its gradients: shapes, strides and options out of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from convolution.correctness.reference import convolve
from kernelwright.dispatch import ArrayError, ConvProblem, Dispatcher, ProblemError

RNG = np.random.default_rng(0)
X = RNG.integers(-3, 4, (2, 9, 10, 12)).astype(np.float32)
W = RNG.integers(-3, 4, (8, 3, 2, 4)).astype(np.float32)
OPTIONS = {"stride": (2, 1), "padding": [(1, 0), 2], "dilation": (1, 2), "groups": 3}
W3 = RNG.integers(-3, 4, (9, 3, 2, 4)).astype(np.float32)
FIELDS = {"groups": 3, "stride": (2, 1), "dilation": (1, 2), "pad_left": (1, 2), "pad_right": (0, 2)}


def problem(direction: str) -> ConvProblem:
    return ConvProblem(direction, 2, 12, 9, (9, 10), (3, 2), **FIELDS)  # type: ignore[arg-type]


def test_the_three_calls_agree_with_the_reference(dispatcher: Dispatcher) -> None:
    for _ in range(3):  # the second call is recognised by its metadata
        y = dispatcher.conv_forward(X, W3, **OPTIONS)
        assert np.array_equal(y, convolve(problem("forward"), X, W3))
        dy = np.sign(y)
        dx = dispatcher.conv_backward_data(dy, W3, (9, 10), **OPTIONS)
        assert np.array_equal(dx, convolve(problem("backward_data"), dy, W3))
        dw = dispatcher.conv_backward_weight(X, dy, (3, 2), **OPTIONS)
        assert np.array_equal(dw, convolve(problem("backward_weight"), X, dy))


def test_channels_of_a_larger_tensor_are_read_without_a_copy(dispatcher: Dispatcher) -> None:
    wide = RNG.integers(-3, 4, (2, 9, 10, 20)).astype(np.float32)
    out = np.full((2, 9, 10, 16), 7, np.float32)
    w = RNG.integers(-3, 4, (8, 1, 1, 12)).astype(np.float32)
    dispatcher.conv_forward(wide[..., 4:16], w, out[..., 2:10])
    assert np.array_equal(out[..., 2:10], wide[..., 4:16] @ w.reshape(8, 12).T)
    assert (out[..., :2] == 7).all() and (out[..., 10:] == 7).all()


def test_one_and_three_dimensions(dispatcher: Dispatcher) -> None:
    x, w = X[:, 0], W3[:, 0].copy()
    y = dispatcher.conv_forward(x, w, groups=3)
    assert np.array_equal(y, convolve(ConvProblem("forward", 2, 12, 9, 10, 2, groups=3), x, w))
    x, w = X[:, None], W3[:, None]
    y = dispatcher.conv_forward(x, w, groups=3, padding=1)
    assert np.array_equal(y, convolve(ConvProblem("forward", 2, 12, 9, (1, 9, 10), (1, 3, 2), 3, pad_left=1), x, w))


def test_results_accumulate(dispatcher: Dispatcher) -> None:
    y = dispatcher.conv_forward(X, W3, **OPTIONS)
    dw = dispatcher.conv_backward_weight(X, y, (3, 2), **OPTIONS)
    again = dispatcher.conv_backward_weight(X, y, (3, 2), dw.copy(), beta=1.0, **OPTIONS)
    assert np.array_equal(again, 2 * dw)
    with pytest.raises(ArrayError, match="pass the old result as out"):
        dispatcher.conv_forward(X, W3, beta=1.0, **OPTIONS)


def test_a_residual_may_be_the_result(dispatcher: Dispatcher) -> None:
    y = dispatcher.conv_forward(X, W3, **OPTIONS)
    bias, old = np.arange(9, dtype=np.float32), np.ones_like(y)
    out = old.copy()
    dispatcher.conv_forward(X, W3, out, bias=bias, residual=out, activation="relu", **OPTIONS)
    assert np.array_equal(out, np.maximum(y + bias + old, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": X[0, 0]}, "2 dimensions; allowed: 3 to 5"),
        ({"w": W3[..., :3]}, "c is 12, and w has 3 for each of 3 groups"),
        ({"w": W3[:, ::2]}, "weights must be dense"),
        ({"w": W3.astype(np.float16)}, "w is .* float16|w is .* fp16"),
        ({"out": np.empty((2, 5, 12, 9), np.float16)}, "y is .* fp16; allowed for this plan"),
        ({"out": X}, "y is"),
        ({"padding": (1, 2, 3)}, "allowed: one integer, or 2"),
        ({"padding": [(1, 2, 3), 1]}, "pairs of left and right"),
        ({"groups": 5}, "w has 4 for each of 5 groups"),
        ({"stride": 0}, "stride is 0; allowed: 1 or more"),
        ({"x": X[:, ::-1]}, "negative ones cannot be addressed"),
        ({"x": np.repeat(X, 2, axis=3)[..., ::2]}, "side by side"),
    ],
)
def test_what_does_not_fit_is_said(dispatcher: Dispatcher, change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"x": X, "w": W3, **OPTIONS, **change}
    with pytest.raises((ArrayError, ProblemError), match=message):
        dispatcher.conv_forward(given.pop("x"), given.pop("w"), **given)  # type: ignore[arg-type]


def test_results_that_share_memory_with_operands_are_refused(dispatcher: Dispatcher) -> None:
    x = np.zeros((1, 4, 4, 8), np.float32)
    w = np.zeros((8, 1, 1, 8), np.float32)
    for _ in range(2):
        with pytest.raises(ArrayError, match="y shares memory with x"):
            dispatcher.conv_forward(x, w, x)
        dispatcher.conv_forward(x, w, np.empty_like(x))
