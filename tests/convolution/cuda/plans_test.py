"""NVIDIA kernels compile without spills, and plan or refuse problems where there is no GPU. tests/gpu runs them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from compiling import executor
from convolution.correctness.cases import random_problems
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import ConvProblem, Dispatcher, KernelLibrary, NoKernelError

_TILE = {"layout": "ndhwgc", "tile": [64, 64, 64], "wave": [1, 1, 1], "warp_tile": [64, 64, 16], "pipeline": "tma"}
SPECS: tuple[dict[str, Any], ...] = (
    {"direction": "forward", "dtype": "bf16", "scheduler": "pingpong", "activation": "any", **_TILE},
    {"direction": "backward_data", "dtype": "bf16", "scheduler": "pingpong", **_TILE},
    {"direction": "backward_weight", "dtype": "bf16", "scheduler": "pingpong", "two_stage": True, **_TILE},
    {"direction": "forward", "dtype": "bf16", "layout": "nhwgc", "depthwise": True},
    {"direction": "backward_weight", "dtype": "bf16", "layout": "nhwgc", "depthwise": True},
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    specs = [{"op": "convolution", **spec} for spec in SPECS]
    selections = select("specs", specs, ["sm_90a"], load_archs())
    out = tmp_path_factory.mktemp("cuda") / "out"
    (manifest,) = build_libraries("conv", selections, DEFAULT_TOOLCHAINS, executor(), out)
    return KernelLibrary.load(manifest.parent)


@pytest.fixture(scope="module")
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher([library], device="cuda:0")


def test_kernels_keep_their_sums_in_registers(library: KernelLibrary) -> None:
    for kernel in library.kernels:
        resources = kernel.resources
        assert resources is not None and resources["spill_instructions"] == 0
        # Choosing an activation takes 16 bytes, where no sum of a tile would fit.
        assert resources["stack_bytes"] <= (16 if kernel.spec.get("activation") == "any" else 0)
        assert (resources["matrix_instructions"] > 0) != kernel.spec["depthwise"]


@pytest.mark.parametrize("direction", ["backward_data", "backward_weight"])
def test_every_random_problem_has_a_plan(dispatcher: Dispatcher, direction: str) -> None:
    for problem in itertools.islice(random_problems(0, direction, "bf16"), 200):
        assert dispatcher.plan(problem).kernel.spec["direction"] == direction


def problem(direction: str = "backward_data", **fields: Any) -> ConvProblem:
    return ConvProblem(
        direction, **{"n": 2, "c": 64, "k": 64, "size": (28, 28), "filter": 3, "dtype": "bf16", **fields}
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"c": 3, "k": 768, "size": (224, 224), "filter": 16, "stride": 16},
        {"c": 3, "k": 1280, "size": (224, 224), "filter": 14, "stride": 14},
        {"stride": 9},
        {"size": (300, 300), "dilation": 140},
        {"size": (40, 40, 40), "dilation": 17},
        {"c": 64, "k": 64, "groups": 4, "stride": 16},
    ],
)
@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
def test_images_that_tma_cannot_walk_through_are_copied(
    dispatcher: Dispatcher, direction: str, fields: dict[str, Any]
) -> None:
    """What a launch needs is the copy: a line for each output, in fp32 for gradients, and packed weights."""
    wanted = problem(direction, **fields)
    outputs, line = wanted.n * math.prod(wanted.out_size), wanted.c * math.prod(wanted.filter)
    plan = dispatcher.plan(wanted)
    assert plan.workspace_bytes >= outputs * line * (4 if direction == "backward_data" else 2)
    near = problem(direction, c=64, k=64, stride=2)
    assert dispatcher.plan(near).workspace_bytes < near.n * math.prod(near.out_size) * 64 * 9 * 2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"])
def test_one_kernel_serves_every_epilogue(dispatcher: Dispatcher, bias: bool, residual: bool, activation: str) -> None:
    wanted = problem("forward", bias=bias, residual=residual, activation=activation)
    assert dispatcher.plan(wanted).kernel.spec["activation"] == "any"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (problem(n=1 << 22), "31 bits"),
        (problem(stride=9, n=1 << 30), "31 bits|at most"),
        (problem("forward", dtype="fp16"), "fp16"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused_with_its_reason(
    dispatcher: Dispatcher, wanted: ConvProblem, reason: str
) -> None:
    with pytest.raises(NoKernelError, match=reason):
        dispatcher.plan(wanted)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (problem("forward", c=24, k=24, groups=24, dilation=2), "without dilation"),
        (problem("forward", c=24, k=24, groups=24, stride=3), "strides of 1 and 2"),
        (problem("forward", c=25, k=25, groups=25), "16 bytes"),
        (problem("forward"), "one channel in and out"),
    ],
)
def test_what_a_depthwise_kernel_leaves_to_products(dispatcher: Dispatcher, wanted: ConvProblem, reason: str) -> None:
    assert not dispatcher.plan(wanted).kernel.spec["depthwise"]
    (stage,) = dispatcher.explain(wanted).stages
    assert any(reason in (kernel.reason or "") for kernel in stage.kernels)


def test_depthwise_gradients_of_weights_have_a_kernel_of_their_own(dispatcher: Dispatcher) -> None:
    images = {"n": 32, "c": 96, "k": 96, "groups": 96, "size": (56, 56), "pad_left": 3, "pad_right": 3}
    served = problem("backward_weight", **images, filter=7)
    plan = dispatcher.plan(served)
    assert plan.kernel.spec["depthwise"] and plan.workspace_bytes >= 4 * 96 * 49
    other = problem("backward_weight", **images, filter=(7, 5))  # the kernel's filters are square
    assert not dispatcher.plan(other).kernel.spec["depthwise"]


def test_images_of_few_channels_are_folded(dispatcher: Dispatcher) -> None:
    stem = {"n": 8, "c": 3, "k": 64, "size": (224, 224), "filter": 7, "stride": 2, "pad_left": 3, "pad_right": 3}
    gradients = 8 * 224 * 112 * 7 * 3 * 4  # of each point along W that an output meets, in fp32
    assert gradients <= dispatcher.plan(problem(**stem)).workspace_bytes < 2 * gradients
    lines = 8 * 224 * 232 * 4 * 2  # padded, four channels a point
    plan = dispatcher.plan(problem("backward_weight", **stem, split_k=2))
    assert 0.9 * lines <= plan.workspace_bytes < 2 * lines
    assert dispatcher.plan(problem(**{**stem, "dilation": 2})).workspace_bytes < gradients  # points lie apart


def test_slices_and_copies_are_in_the_workspace(dispatcher: Dispatcher) -> None:
    weights = 64 * 9 * 64
    assert dispatcher.plan(problem("backward_weight", split_k=1)).workspace_bytes == 0
    assert dispatcher.plan(problem("backward_weight", split_k=5)).workspace_bytes >= 5 * 4 * weights
    assert dispatcher.plan(problem()).workspace_bytes == 0
    padded = dispatcher.plan(problem(k=63))  # points of dy are 126 bytes apart: they are copied
    assert padded.workspace_bytes >= 2 * 26 * 26 * 64 * 2
