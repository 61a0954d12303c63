"""Every direction, dimension, dtype and kind of groups on CPUs against float64, exact on small integers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from convolution.correctness.bench import check
from convolution.correctness.cases import random_problems
from kernelwright.dispatch import ConvProblem, Dispatcher, NoKernelError

DIRECTIONS = ("forward", "backward_data", "backward_weight")
DTYPES = ("fp32", "bf16", "fp16")
GROUPS = {
    "one": (1, 19, 37),
    "two": (2, 32, 48),
    "few": (4, 16, 16),
    "depthwise": (24, 24, 24),
    "wide": (3, 99, 96),
    "stem": (1, 3, 48),  # vectors along the channels of dy
    "heads": (2, 70, 6),  # vectors along the channels that are read
}
SIZES: dict[int, Any] = {1: 61, 2: (15, 18), 3: (5, 6, 9)}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dims", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_kind_of_groups(dispatcher: Dispatcher, direction: str, dims: int, dtype: str) -> None:
    for seed, (groups, c, k) in enumerate(GROUPS.values()):
        for stride, dilation, left, right in ((1, 1, 1, 1), (2, 1, 2, 0), (1, 2, 0, 3), (3, 2, 1, 2)):
            problem = ConvProblem(
                direction, 2, c, k, SIZES[dims], (3,) * dims, groups, stride, dilation, left, right, dtype
            )  # fmt: skip
            check(dispatcher, problem, seed, whole=True)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_threads_change_no_bit(dispatcher: Dispatcher, direction: str) -> None:
    for groups, c, k in ((1, 70, 90), (32, 64, 64), (2, 40, 40), (1, 3, 64), (1, 64, 4)):
        problem = ConvProblem(direction, 3, c, k, (33, 30), 3, groups, pad_left=1)
        shapes = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[direction]
        of = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
        rng, results = np.random.default_rng(0), set()
        a, b = (rng.standard_normal(of[kind], np.float32) for kind in shapes[:2])
        for threads in (1, 2, 5):
            dispatcher.set_num_threads(threads)
            out = np.empty(of[shapes[2]], np.float32)
            fresh = Dispatcher(dispatcher.libraries)  # its plans are for so many threads
            results.add(fresh.plan(problem)(a, b, out).tobytes())
        dispatcher.set_num_threads(0)
        assert len(results) == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_problems(dispatcher: Dispatcher, direction: str, dtype: str) -> None:
    for number, problem in enumerate(itertools.islice(random_problems(1, direction, dtype), 25)):
        check(dispatcher, problem, number, whole=number % 2 == 0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_alpha_and_beta(dispatcher: Dispatcher, direction: str) -> None:
    for number, problem in enumerate(itertools.islice(random_problems(2, direction, alpha=0.5, beta=-2.0), 12)):
        check(dispatcher, problem, number, whole=True)


def test_a_strided_gradient_is_written_everywhere(dispatcher: Dispatcher) -> None:
    """Between the points that a filter of one meets at stride 3, dx is zero."""
    problem = ConvProblem("backward_data", 1, 8, 8, (10, 11), 1, stride=3)
    dx = np.full(problem.x_shape, np.nan, np.float32)
    dispatcher.plan(problem)(np.ones(problem.y_shape, np.float32), np.ones(problem.w_shape, np.float32), dx)
    assert (dx[:, ::3, ::3] == 8).all() and dx.sum() == 8 * dx[:, ::3, ::3].size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fields", [
    {"bias": True}, {"bias": True, "activation": "relu"}, {"bias": True, "residual": True, "activation": "relu"},
    {"activation": "gelu"}, {"bias": True, "activation": "silu"}, {"residual": True}, {"activation": "fast_gelu"},
    {"residual": True, "activation": "sigmoid"}, {"bias": True, "residual": True, "activation": "tanh"},
])  # fmt: skip
def test_fused_epilogues(dispatcher: Dispatcher, fields: dict[str, Any], dtype: str) -> None:
    for number, problem in enumerate(itertools.islice(random_problems(3, "forward", dtype=dtype, **fields), 15)):
        check(dispatcher, problem, number, whole=number % 2 == 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", GROUPS)
def test_one_kernel_has_every_epilogue(dispatcher: Dispatcher, groups: str, dtype: str) -> None:
    """Also where vectors hold groups of few channels, and where channels are summed at the end."""
    kernels = [one for one in dispatcher.kernels if one.spec.get("activation") == "any" and one.spec["dtype"] == dtype]
    assert kernels
    for kernel in kernels:
        bound = Dispatcher(dispatcher.libraries, selection=kernel.identity)
        for seed, (bias, residual, activation) in enumerate(
            itertools.product((False, True), (False, True), ("none", "relu", "gelu"))
        ):
            problem = ConvProblem(
                "forward", 2, *GROUPS[groups][1:], (15, 18), 3, GROUPS[groups][0], stride=1 + seed % 2, pad_left=1,
                dtype=dtype, bias=bias, residual=residual, activation=activation, alpha=0.5, beta=2.0 * (seed % 3 == 0),
            )  # fmt: skip
            assert check(bound, problem, seed, whole=True) == kernel.name


@pytest.mark.parametrize("dtype", DTYPES)
def test_depthwise_with_channels_outside(dispatcher: Dispatcher, dtype: str) -> None:
    """Layout ngchw: vectors of neighbouring outputs."""
    cases: tuple[tuple[Any, ...], ...] = (
        ((14, 90), 3, 1, 1, 1, 1),
        ((30, 31), 5, 2, 1, 2, 2),
        ((9, 200), (1, 7), (1, 3), 2, 0, (0, 5)),
        ((3, 3), 3, 1, 1, 3, 0),
        ((40, 17), 7, 4, 1, 0, 3),
        ((1, 1), 1, 1, 1, 0, 0),
    )
    for number, (size, filter, stride, dilation, left, right) in enumerate(cases):
        problem = ConvProblem("forward", 2, 5, 5, size, filter, 5, stride, dilation, left, right, dtype, "ngchw")
        assert "depthwise" in check(dispatcher, problem, number, whole=True)


def test_long_sums_and_many_channels(dispatcher: Dispatcher) -> None:
    """More channels and filter points than one pass sums, more columns than one panel, images in several slabs."""
    problems = (
        ConvProblem("forward", 1, 1700, 45, (7, 9), 3, pad_left=1),
        ConvProblem("forward", 5, 64, 70, (40, 33), 3),
        ConvProblem("forward", 2, 3, 32, (61, 64), 7, stride=2, pad_left=3),
        ConvProblem("forward", 1, 512, 64, (30, 30), 1),
        ConvProblem("forward", 2, 4, 6, 70000, 5),
        ConvProblem("backward_data", 1, 45, 1700, (7, 9), 3, stride=2, pad_left=1),
        ConvProblem("backward_weight", 6, 150, 33, (40, 31), 3),
        ConvProblem("backward_weight", 2, 3, 40, (61, 64), 7, stride=2, pad_left=3),
        ConvProblem("backward_weight", 2, 64, 64, 20000, 3),
        ConvProblem("backward_weight", 3, 24, 144, (17, 19), 1),
    )
    for number, problem in enumerate(problems):
        check(dispatcher, problem, number, whole=True, repeats=1)


def test_no_images(dispatcher: Dispatcher) -> None:
    """Nothing is written but dw, which is zero."""
    x, w = np.zeros((0, 5, 6, 8), np.float32), np.ones((4, 3, 3, 8), np.float32)
    assert dispatcher.conv_forward(x, w).shape == (0, 3, 4, 4)
    dy = np.zeros((0, 3, 4, 4), np.float32)
    assert dispatcher.conv_backward_data(dy, w, (5, 6)).shape == (0, 5, 6, 8)
    dw = dispatcher.conv_backward_weight(x, dy, 3, np.full((4, 3, 3, 8), np.nan, np.float32))
    assert not dw.any()


def test_what_no_kernel_serves_is_said(dispatcher: Dispatcher) -> None:
    problem = ConvProblem("forward", 1, 8, 8, (5, 5), 3, groups=8, layout="ngchw", activation="tanh")
    with pytest.raises(NoKernelError, match=r"activation is tanh, this kernel does"):
        dispatcher.plan(problem)
    listed = dispatcher.explain(problem)
    assert listed.chosen is None and any("this kernel does" in (kernel.reason or "") for kernel in listed)


def test_explain_says_which_kernel_and_why(dispatcher: Dispatcher) -> None:
    report = dispatcher.explain(ConvProblem("forward", 1, 7, 13, (9, 9), 3))
    assert report.chosen is not None and report.chosen.estimate is not None and report.chosen.short in str(report)
    assert "grouped_conv_fwd_fp32" in report.chosen.name and report.chosen.short.startswith("forward fp32 ")
    assert any(kernel.reason and "dtype_x is fp32" in kernel.reason for kernel in report)
    weight = dispatcher.explain(ConvProblem("backward_weight", 1, 7, 13, (9, 9), 3))
    assert weight.chosen is not None and weight.chosen.choices == "split_k=1"
