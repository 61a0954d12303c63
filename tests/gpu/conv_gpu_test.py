"""Every convolution kernel on the GPU: exact on small integers, against float64 on others, on random problems."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("kernelwright.dispatch")

from conv_operands import check, tensor  # noqa: E402
from places import DEVICE, synchronize  # noqa: E402

from conftest import HERE  # noqa: E402
from convolution.correctness.cases import random_problems  # noqa: E402
from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary, NoKernelError  # noqa: E402

FOLDER = Path(os.environ.get("KERNELWRIGHT_GPU_CONV", HERE.parents[1] / ".gpu" / "conv" / "sm_90a"))
CASES = int(os.environ.get("KERNELWRIGHT_GPU_CONV_CASES", "500"))
DIRECTIONS = ("forward", "backward_data", "backward_weight")
DTYPES = ("bf16", "fp16")

pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(
        not (FOLDER / "manifest.json").exists() or not Path(os.environ.get("KERNELWRIGHT_LIBRARY", "/-")).exists(),
        reason=f"needs a convolution library in {FOLDER} and libkernelwright.so",
    ),
]


@cache
def library() -> KernelLibrary:
    return KernelLibrary.load(FOLDER)


@cache
def dispatcher(selection: str = "analytic") -> Dispatcher:
    return Dispatcher([library()], device=DEVICE, selection=selection)


def kernels(direction: str) -> list[Any]:
    return [kernel for kernel in library().kernels if kernel.spec["direction"] == direction]


ACTIVATIONS = ("none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh")
EPILOGUES: list[dict[str, Any]] = [
    {"bias": bias, "residual": residual, "activation": activation}
    for activation in ACTIVATIONS
    for bias in (False, True)
    for residual in (False, True)
]


def served(kernel: Any, number: int = 0, **fields: Any) -> dict[str, Any]:
    """The fields of problems that this kernel serves; of one that serves every epilogue, in turns."""
    spec = kernel.spec
    epilogue = {name: spec[name] for name in ("bias", "residual", "activation") if name in spec}
    if epilogue.get("activation") == "any":
        epilogue = EPILOGUES[number * 5 % len(EPILOGUES)]
    return {"dtype": spec["dtype"], **epilogue, **fields}


SHAPES: dict[str, dict[str, Any]] = {
    "tiles": {"n": 3, "c": 128, "k": 192, "size": (28, 28), "filter": 3, "pad_left": 1},
    "narrow": {"n": 2, "c": 64, "k": 40, "size": (19, 23), "filter": (3, 1), "pad_left": (2, 0), "pad_right": (0, 1)},
    "one_point": {"n": 5, "c": 200, "k": 136, "size": (14, 15), "filter": 1},
    "odd_channels": {"n": 2, "c": 3, "k": 21, "size": (37, 41), "filter": 7, "stride": 2, "pad_left": 3},
    "strided": {"n": 2, "c": 72, "k": 96, "size": (31, 30), "filter": 3, "stride": 2, "pad_left": 1},
    "strided_unused": {"n": 2, "c": 64, "k": 64, "size": (17, 18), "filter": 1, "stride": 3},
    "patches": {"n": 2, "c": 96, "k": 192, "size": (28, 28), "filter": 2, "stride": 2},
    "dilated": {"n": 1, "c": 64, "k": 64, "size": (40, 33), "filter": 3, "dilation": (12, 5), "pad_left": (12, 5)},
    "strided_dilated": {"n": 2, "c": 32, "k": 64, "size": (25, 26), "filter": 3, "stride": 2, "dilation": 2},
    "few_groups": {"n": 2, "c": 256, "k": 128, "groups": 2, "size": (14, 14), "filter": 3, "pad_left": 1},
    "many_groups": {"n": 2, "c": 128, "k": 256, "groups": 32, "size": (14, 13), "filter": 3, "pad_left": 1},
    "odd_groups": {"n": 2, "c": 17 * 24, "k": 17 * 24, "groups": 17, "size": (14, 14), "filter": 3, "pad_left": 1},
    "depthwise": {"n": 2, "c": 144, "k": 144, "groups": 144, "size": (20, 21), "filter": 3, "stride": 2, "pad_left": 1},
    "line": {"n": 2, "c": 64, "k": 128, "size": 1000, "filter": 2, "dilation": 64},
    "volume": {"n": 1, "c": 64, "k": 72, "size": (7, 15, 14), "filter": 3, "pad_left": 1},
    "volume_strided": {"n": 2, "c": 32, "k": 64, "size": (8, 14, 13), "filter": 3, "stride": 2, "pad_left": 1},
    "video_stem": {"n": 1, "c": 3, "k": 64, "size": (6, 33, 32), "filter": (3, 7, 7), "stride": 2, "pad_left": 3},
    "few_channels": {"n": 3, "c": 4, "k": 40, "size": (13, 18), "filter": 3, "pad_left": 1},
    "patch_stem": {"n": 2, "c": 3, "k": 96, "size": (32, 35), "filter": 4, "stride": 4},
    "folded": {"n": 2, "c": 16, "k": 24, "size": (15, 22), "filter": (1, 5), "pad_left": (0, 4), "pad_right": (0, 1)},
    "patches_16": {"n": 2, "c": 3, "k": 72, "size": (64, 50), "filter": 16, "stride": 16},
    "patches_14": {"n": 3, "c": 3, "k": 40, "size": (57, 70), "filter": 14, "stride": 14},
    "tubelets": {"n": 2, "c": 3, "k": 64, "size": (5, 33, 32), "filter": (2, 16, 16), "stride": (2, 16, 16)},
    "overlapping_patches": {"n": 2, "c": 5, "k": 24, "size": (61, 47), "filter": 13, "stride": 9, "pad_left": 4},
    "far_taps": {"n": 1, "c": 24, "k": 40, "size": (300, 280), "filter": 3, "dilation": 140, "pad_left": 130},
    "strided_far_taps": {"n": 1, "c": 8, "k": 16, "size": (130, 140), "filter": 3, "stride": 10, "dilation": 45},
    "grouped_patches": {"n": 2, "c": 12, "k": 24, "groups": 4, "size": (40, 41), "filter": 10, "stride": 10},
    "many_grouped_points": {"n": 2, "c": 96, "k": 96, "groups": 24, "size": (28, 19), "filter": 1, "stride": 9},
    "one_point_strided": {"n": 2, "c": 116, "k": 232, "size": (15, 14), "filter": 1, "stride": 2},
    "channels_116": {"n": 2, "c": 116, "k": 116, "size": (14, 13), "filter": 3, "pad_left": 1},
    "one_pixel": {"n": 9, "c": 64, "k": 64, "size": (1, 1), "filter": 1},
}  # fmt: skip


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_kernel_on_every_kind_of_problem(direction: str, name: str) -> None:
    for number, kernel in enumerate(kernels(direction)):
        if kernel.spec.get("depthwise"):
            continue
        problem = ConvProblem(direction, **served(kernel, number + len(name)), **SHAPES[name])
        assert check(dispatcher(kernel.name), problem, number, whole=True) == kernel.name
        check(dispatcher(kernel.name), problem, number, whole=False)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("filter", [3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_every_depthwise_kernel(direction: str, filter: int, stride: int) -> None:
    for number, kernel in enumerate(kernels(direction)):
        if not kernel.spec.get("depthwise"):
            continue
        shapes = (64, (14, 14), filter // 2), (24, (7, 7), 1), (200, (33, 18), filter - 1), (72, (9, 30), 0)
        for c, size, pad in shapes:
            problem = ConvProblem(
                direction, 3, c, c, size, filter, c, stride, pad_left=pad, pad_right=filter // 2,
                **served(kernel, number + c),
            )  # fmt: skip
            check(dispatcher(kernel.name), problem, number, whole=True)
            check(dispatcher(kernel.name), problem, number, whole=False)
            if direction == "backward_weight":
                for split_k in (1, 5, 100):
                    check(dispatcher(kernel.name), replace(problem, split_k=split_k), number, whole=True)


@pytest.mark.parametrize("name", ["tiles", "narrow", "odd_channels", "many_groups", "depthwise", "patches_14"])
def test_every_epilogue_at_run_time(name: str) -> None:
    for kernel in kernels("forward"):
        depthwise = bool(kernel.spec.get("depthwise"))
        if kernel.spec.get("activation") != "any" or depthwise > (name == "depthwise"):
            continue
        for number, epilogue in enumerate(EPILOGUES):
            factors = ({}, {"alpha": 0.5}, {"beta": -2.0})[number % 3]
            problem = ConvProblem("forward", dtype=kernel.spec["dtype"], **SHAPES[name], **epilogue, **factors)
            for whole in (True, False):
                assert check(dispatcher(kernel.name), problem, number, whole) == kernel.name


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", range(5))
def test_random_problems(direction: str, dtype: str, part: int) -> None:
    problems = random_problems(part, direction, dtype)
    for number, problem in enumerate(itertools.islice(problems, CASES // 10)):
        check(dispatcher(), problem, number, whole=number % 2 == 0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_alpha_and_beta(direction: str) -> None:
    for number, problem in enumerate(itertools.islice(random_problems(2, direction, "bf16", alpha=0.5, beta=-2.0), 20)):
        check(dispatcher(), problem, number, whole=True)


@pytest.mark.parametrize("split_k", [1, 2, 3, 7, 16, 64])
def test_slices_of_a_sum(split_k: int) -> None:
    for kernel in kernels("backward_weight"):
        for name in ("tiles", "strided", "many_groups", "odd_channels", "volume") * (not kernel.spec.get("depthwise")):
            problem = ConvProblem("backward_weight", **served(kernel), **SHAPES[name], split_k=split_k)
            check(dispatcher(kernel.name), problem, split_k, whole=True)


def test_repeated_launches_give_the_same_bits() -> None:
    problem = ConvProblem("backward_weight", 4, 64, 64, (28, 28), 3, pad_left=1, dtype="bf16", split_k=8)
    x, dy, out = (tensor(problem, kind) for kind in "xyw")
    generator = torch.Generator(DEVICE).manual_seed(1)
    for one in (x, dy):
        one.fill(False, generator)
    distinct = set()
    for _ in range(5):
        dispatcher().plan(problem)(x.view, dy.view, out.view)
        synchronize()
        distinct.add(bytes(out.view.cpu().view(torch.int16).numpy().tobytes()))
    assert len(distinct) == 1


def test_a_gradient_of_no_images_is_zero() -> None:
    problem = ConvProblem("backward_weight", 0, 64, 64, (8, 8), 3, dtype="bf16")
    x, dy, out = (tensor(problem, kind) for kind in "xyw")
    dispatcher().plan(problem)(x.view, dy.view, out.view)
    synchronize()
    assert bool((out.view == 0).all())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"filter": 1, "dtype": "fp32"}, "fp32"),
        ({"filter": 1, "n": 1 << 20}, "31 bits"),
    ],
)
def test_what_is_not_served_is_refused(fields: dict[str, Any], reason: str) -> None:
    problem = ConvProblem("forward", c=64, k=64, size=(300, 300), **{"n": 1, "dtype": "bf16", **fields})
    with pytest.raises(NoKernelError, match=reason):
        dispatcher().plan(problem)


def test_calls_with_arrays() -> None:
    x = torch.randint(-2, 3, (2, 20, 20, 64), device=DEVICE).to(torch.bfloat16)
    w = torch.randint(-2, 3, (32, 3, 3, 64), device=DEVICE).to(torch.bfloat16)
    y = dispatcher().conv_forward(x, w, padding=1)
    wanted = torch.nn.functional.conv2d(x.double().movedim(3, 1), w.double().movedim(3, 1), padding=1).movedim(1, 3)
    assert torch.equal(y, wanted.to(torch.bfloat16))
    assert dispatcher().conv_backward_data(y, w, (20, 20), padding=1).shape == x.shape
    assert dispatcher().conv_backward_weight(x, y, (3, 3), padding=1).shape == w.shape
