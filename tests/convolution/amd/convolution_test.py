"""AMD convolution kernels run in the simulator, through the dispatcher and the library's launcher.

Every direction, 2D and 3D, with groups, strides, dilations, odd sizes and gaps in memory; memory around results is
guarded. Sums of small integers must be bit-exact, random numbers must keep the rounding bound of their sum, and no
check for races, missing waits and uninitialised values may find anything.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from convolution.amd.built import SPECS, library
from convolution.correctness.bench import check
from kernelwright.dispatch import ConvProblem, Dispatcher, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device

# n, c and k of all groups, then sizes, filter, and fields by name.
PLANES: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((2, 32, 48, (7, 9), (3, 3), 2), {"stride": (2, 1), "pad_left": 1}),
    ((1, 40, 8, (8, 6), (3, 2)), {"pad_left": (1, 0), "pad_right": (0, 2), "dilation": (2, 1)}),
    ((1, 8, 16, (7, 8), (2, 2)), {"stride": (3, 2), "dilation": 2}),
    ((3, 8, 136, (5, 11), (1, 1)), {}),
)
VOLUMES: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1, 8, 8, (3, 4, 5), (2, 3, 2)), {"stride": (1, 2, 1), "pad_left": (1, 1, 0)}),
    ((2, 32, 16, (4, 3, 3), (3, 3, 3), 2), {"pad_left": 1}),
    ((1, 16, 8, (5, 4, 6), (1, 2, 1)), {"stride": (2, 3, 2), "dilation": (1, 2, 1)}),
)
# Phases of a stride that no filter point meets, and points in memory that lie an odd number of elements apart.
ODD: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1, 8, 5, (7, 8), (2, 2)), {"stride": (3, 2), "dilation": 2}),
    ((2, 8, 1, (9, 6), (1, 1)), {"stride": 2}),
)
POINTS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((2, 128, 32, (5, 5), (1, 1), 2), {"stride": (2, 1)}),
    ((1, 200, 8, (3, 4), (1, 1)), {}),
)
KERNELS = [(arch, number) for arch, specs in SPECS.items() for number in range(len(specs))]


def problems(arch: str, number: int) -> list[ConvProblem]:
    """What a kernel is tried with, each densely in memory and with gaps."""
    spec = SPECS[arch][number]
    shapes = POINTS if "specialization" in spec else VOLUMES if spec["layout"] == "ndhwgc" else PLANES
    if spec["direction"] == "backward_data" and "vector" in spec:
        shapes = ODD
    fields = {"dtype": spec["dtype"], **{key: spec[key] for key in ("bias", "residual", "activation") if key in spec}}
    if spec.get("two_stage"):
        fields["split_k"] = 3
    dense = [ConvProblem(spec["direction"], *shape, **options, **fields) for shape, options in shapes]
    return [*dense, *(with_even_gaps(problem) for problem in dense if "split_k" not in fields)]


def with_even_gaps(problem: ConvProblem) -> ConvProblem:
    """The problem on parts of larger tensors, whose points are still aligned to 4 bytes."""
    strides = []
    for channels, sizes in ((problem.c, problem.sizes), (problem.k, problem.out_size)):
        steps = [channels + 2]
        for size in reversed(sizes):
            steps.insert(0, steps[0] * size + 4)
        strides.append((steps[0], 1, *steps[1:]))
    return replace(problem, stride_x=strides[0], stride_y=strides[1])


@cache
def dispatcher(arch: str, number: int) -> Dispatcher:
    """One that has the one kernel of a spec."""
    mocks.native_library()
    wanted, made = SPECS[arch][number], library(arch)
    fields = ("direction", "dtype", "pipeline")
    (name,) = [one.name for one in made.kernels if all(one.spec[field] == wanted[field] for field in fields)]
    return Dispatcher([made], f"sim:{arch}", selection=name)


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("arch", "number"), KERNELS)
def test_every_result_is_right(arch: str, number: int) -> None:
    for seed, problem in enumerate(problems(arch, number)):
        check(dispatcher(arch, number), problem, seed, whole=True, repeats=1)
        assert any(report.counts["matrix"] > 0 for report in device.last_reports())


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("arch", "number"), KERNELS)
def test_rounding_keeps_the_bound_of_the_sum(arch: str, number: int) -> None:
    check(dispatcher(arch, number), problems(arch, number)[0], 5, whole=False, repeats=2)


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("arch", "number"), KERNELS)
def test_no_check_finds_anything_in_any_order_of_waves(arch: str, number: int) -> None:
    for seed in (None, 1):
        with device.configure(checks=Checks(uninitialised=True, races=True, waits=True), seed=seed):
            check(dispatcher(arch, number), problems(arch, number)[0], 3, whole=True, repeats=1)


@pytest.mark.thorough(instead="tests/amd/convolution_widths_test.py")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"c": 12}, "c per group = 12 is not a multiple of 8, the vector in which x"),
        ({"k": 12}, "k per group = 12 is not a multiple of 8, the vector in which y"),
        ({"beta": 0.5}, "beta is 0.5, this kernel serves 0"),
        ({"stride_x": (145, 1, 36, 9)}, "a stride of x is .* elements: points are not aligned to 4 bytes"),
        ({"bias": True}, "the problem has a bias, this kernel adds none"),
        ({"size": (2**16, 2**15)}, "a stride in memory does not fit into 31 bits"),
        ({"n": 2**12, "size": (2**9, 2**9)}, "x spans 4096 images of .*: its byte offsets do not fit into 31 bits"),
    ],
)
def test_what_a_kernel_does_not_serve_is_said(fields: dict[str, Any], why: str) -> None:
    plain = {"n": 1, "c": 8, "k": 8, "size": (4, 4), "filter": 1, "dtype": "fp16"}
    with pytest.raises(NoKernelError, match=why):
        dispatcher("gfx942", 0).plan(ConvProblem("forward", **{**plain, **fields}))


@pytest.mark.thorough(instead="test_every_result_is_right")
@pytest.mark.parametrize("split_k", [1, 3])
def test_gradients_of_weights_add_up_in_place(split_k: int) -> None:
    shape, options = PLANES[0]
    for scales in ({"beta": 1.0}, {"alpha": 2.0, "beta": -3.0}):
        problem = ConvProblem("backward_weight", *shape, **options, dtype="fp16", split_k=split_k, **scales)
        check(dispatcher("gfx942", 2), problem, 7, whole=True, repeats=1)


@pytest.mark.thorough(instead="test_every_result_is_right")
@pytest.mark.parametrize("scales", [{}, {"alpha": 2.0}, {"beta": -0.5}, {"split_k": 3}])
def test_weights_of_no_images_have_gradients_of_zero(scales: dict[str, Any]) -> None:
    problem = ConvProblem("backward_weight", 0, 32, 48, (7, 9), (3, 3), 2, pad_left=1, dtype="fp16", **scales)
    x, dy = (np.empty(shape, np.float16) for shape in (problem.x_shape, problem.y_shape))
    out = np.full(problem.w_shape, 3 if problem.beta else np.nan, np.float16)
    dispatcher("gfx942", 2).plan(problem)(x, dy, out)
    assert (out == 3 * problem.beta).all()


@pytest.mark.thorough(instead="test_every_result_is_right")
def test_how_many_slices_changes_no_bit_of_exact_sums() -> None:
    shape, options = PLANES[0]
    results = set()
    for split_k in (1, 2, 3):
        problem = ConvProblem("backward_weight", *shape, **options, dtype="fp16", split_k=split_k)
        rng = np.random.default_rng(0)
        x, dy = (rng.integers(-2, 3, each).astype(np.float16) for each in (problem.x_shape, problem.y_shape))
        out = np.full(problem.w_shape, np.nan, np.float16)
        dispatcher("gfx942", 2).plan(problem)(x, dy, out)
        results.add(out.tobytes())
    assert len(results) == 1
