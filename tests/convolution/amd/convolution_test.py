"""AMD convolution kernels run in the simulator, through the dispatcher and the library's launcher.

Every direction, 2D and 3D, with groups, strides, dilations and odd sizes. Sums of small integers must be bit-exact; no
check for races, missing waits and uninitialised values may find anything.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from convolution import reference
from convolution.amd.built import SPECS, library
from convolution.reference import Shape
from kernelwright.dispatch import Dispatcher, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device

DTYPES = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
SHAPES = {
    2: (
        Shape(2, 16, 24, (7, 9), (3, 3), groups=2, stride=(2, 1), left=(1, 1)),
        Shape(1, 40, 8, (8, 6), (3, 2), left=(1, 0), right=(0, 2), dilation=(2, 1)),
        Shape(1, 8, 16, (7, 8), (2, 2), stride=(3, 2), dilation=(2, 2)),
        Shape(3, 8, 136, (5, 11), (1, 1)),
    ),
    3: (
        Shape(1, 8, 8, (3, 4, 5), (2, 3, 2), stride=(1, 2, 1), left=(1, 1, 0)),
        Shape(2, 16, 8, (4, 3, 3), (3, 3, 3), groups=2, left=(1, 1, 1)),
        Shape(1, 16, 8, (5, 4, 6), (1, 2, 1), stride=(2, 3, 2), dilation=(1, 2, 1)),
    ),
}
POINTS = (Shape(2, 64, 16, (5, 5), (1, 1), groups=2, stride=(2, 1)), Shape(1, 200, 8, (3, 4), (1, 1)))
CASES = [
    (arch, number, shape)
    for arch, specs in SPECS.items()
    for number, spec in enumerate(specs)
    for shape in (POINTS if "specialization" in spec else SHAPES[3 if spec["layout"] == "ndhwgc" else 2])
]


@cache
def dispatcher(arch: str, number: int) -> Dispatcher:
    """One that has the one kernel of a spec."""
    mocks.native_library()
    wanted, made = SPECS[arch][number], library(arch)
    fields = ("direction", "dtype", "pipeline")
    (name,) = [one.name for one in made.kernels if all(one.spec[field] == wanted[field] for field in fields)]
    return Dispatcher([made], f"sim:{arch}", selection=name)


def drawn(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> np.ndarray:
    """Small integers, channels of all groups side by side."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def flat(array: np.ndarray, shape: Shape, weights: bool = False) -> np.ndarray:
    """Groups and their channels as one axis, as calls take them."""
    if weights:
        return array.reshape(shape.groups * shape.k, *shape.filter, shape.c)
    return array.reshape(*array.shape[:-2], array.shape[-2] * array.shape[-1])


def computed(arch: str, number: int, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel makes of a problem, and what is right."""
    spec, dispatch = SPECS[arch][number], dispatcher(arch, number)
    dtype = DTYPES[spec["dtype"]]
    x, w, y = (drawn(each, dtype, seed) for seed, each in enumerate((shape.x_shape, shape.w_shape, shape.y_shape)))
    options: dict[str, Any] = {"stride": shape.stride, "dilation": shape.dilation, "groups": shape.groups}
    options["padding"] = list(zip(shape.left, shape.right, strict=True))
    if spec["direction"] == "backward_data":
        found = dispatch.conv_backward_data(flat(y, shape), flat(w, shape, True), shape.extent, **options)
        return found, flat(reference.backward_data(shape, y, w), shape)
    if spec["direction"] == "backward_weight":
        splits = {"split_k": 3} if spec.get("two_stage") else {}
        found = dispatch.conv_backward_weight(flat(x, shape), flat(y, shape), shape.filter, **options, **splits)
        return found, flat(reference.backward_weight(shape, x, y), shape, True)
    wanted = flat(reference.forward(shape, x, w), shape)
    if spec.get("bias"):
        bias = drawn((wanted.shape[-1],), dtype, 7)
        options |= {"bias": bias, "residual": flat(y, shape), "activation": "relu"}
        wanted = np.maximum(wanted + bias.astype(np.float64) + flat(y, shape).astype(np.float64), 0)
    return dispatch.conv_forward(flat(x, shape), flat(w, shape, True), **options), wanted


@pytest.mark.parametrize(("arch", "number", "shape"), CASES)
def test_every_result_is_right(arch: str, number: int, shape: Shape) -> None:
    found, wanted = computed(arch, number, shape)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(found.dtype).astype(np.float64))
    report = device.last_reports()[0]
    assert report.simulated and report.arch == arch and report.counts["matrix"] > 0


@pytest.mark.parametrize(("arch", "number"), dict.fromkeys((arch, number) for arch, number, _ in CASES))
def test_no_check_finds_anything_in_any_order_of_waves(arch: str, number: int) -> None:
    shape = next(shape for one, other, shape in CASES if (one, other) == (arch, number))
    for seed in (None, 1):
        with device.configure(checks=Checks(uninitialised=True, races=True, waits=True), seed=seed):
            found, wanted = computed(arch, number, shape)
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(found.dtype).astype(np.float64))


@pytest.mark.parametrize(
    ("shape", "beta", "why"),
    [
        (Shape(1, 12, 8, (4, 4), (1, 1)), 0.0, "c per group = 12 is not a multiple of 8, the vector in which x"),
        (Shape(1, 8, 12, (4, 4), (1, 1)), 0.0, "k per group = 12 is not a multiple of 8, the vector in which y"),
        (Shape(1, 8, 8, (4, 4), (1, 1)), 0.5, "beta is 0.5, this kernel serves 0"),
    ],
)
def test_what_a_kernel_does_not_serve_is_said(shape: Shape, beta: float, why: str) -> None:
    x, w = (drawn(each, DTYPES["fp16"], 0) for each in (shape.x_shape, shape.w_shape))
    out = np.zeros((shape.n, *shape.out, shape.k), np.float16)
    with pytest.raises(NoKernelError, match=why):
        dispatcher("gfx942", 0).conv_forward(flat(x, shape), flat(w, shape, True), out, beta=beta)


def test_rounding_keeps_the_bound_of_the_sum() -> None:
    shape = Shape(2, 64, 16, (9, 10), (3, 3), groups=2, left=(1, 1))
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(each).astype(np.float16) for each in (shape.x_shape, shape.w_shape))
    found = dispatcher("gfx942", 0).conv_forward(flat(x, shape), flat(w, shape, True), padding=1, groups=2)
    wanted = flat(reference.forward(shape, x, w), shape)
    sizes = flat(reference.forward(shape, np.abs(x), np.abs(w)), shape)
    terms = math.prod(shape.filter) * shape.c
    bound = np.abs(wanted) * 2.0**-11 + sizes * terms * 2.0**-24 + 2.0**-24
    assert (np.abs(found.astype(np.float64) - wanted) <= bound).all()
