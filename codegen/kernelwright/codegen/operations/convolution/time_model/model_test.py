from __future__ import annotations

from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.spec import conv_spec
from kernelwright.codegen.operations.convolution.time_model.model import ConvTimeModel
from kernelwright.codegen.operations.convolution.time_model.serves import refusal
from kernelwright.codegen.operations.convolution.time_model.slices import slices
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import SpecError

MODEL = ConvTimeModel()
LAYER: dict[str, Any] = {"direction": "forward", "n": 8, "c": 64, "k": 128, "size": [28, 28], "filter": [3, 3]}
LAYER |= {"pad_left": [1, 1], "dtype": "bf16"}


def kernels(arch: str, direction: str = "forward") -> list[Kernel]:
    candidates = [*expand_set("convolution:essential", load(arch)).kernels]
    if arch == "sm_90a":
        candidates += expand_set("convolution:default", load(arch)).kernels
    return [one for one in candidates if conv_spec(one).direction == direction]


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "x86_64_v4"])
@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
def test_more_images_never_take_less_time(arch: str, direction: str) -> None:
    architecture, served = load(arch), 0
    for kernel in kernels(arch, direction):
        dtype = str(conv_spec(kernel).dtype)
        few, many = (MODEL.read({**LAYER, "direction": direction, "dtype": dtype, "n": n}) for n in (1, 64))
        low, high = MODEL.microseconds(kernel, few, architecture), MODEL.microseconds(kernel, many, architecture)
        assert (low is None) == (high is None) and (low is None or 0 < low <= high)  # type: ignore[operator]
        served += low is not None
    assert served


@pytest.mark.parametrize(
    ("fields", "served"),
    [
        ({}, True),
        ({"dtype": "fp16"}, False),
        ({"direction": "backward_data"}, False),
        ({"bias": True}, True),
        ({"residual": True, "activation": "relu"}, True),
        ({"size": [28, 28, 28], "filter": [3, 3, 3], "pad_left": 1}, True),
        ({"size": 28, "filter": 3, "pad_left": 1}, True),
        ({"layout": "ngchw"}, False),
        ({"groups": 64, "k": 64}, True),
        ({"c": 63}, True),
        ({"pad_right": [0, 2]}, True),
    ],
)
def test_what_a_shipped_forward_kernel_serves(fields: dict[str, Any], served: bool) -> None:
    kernel = next(one for one in kernels("sm_90a") if conv_spec(one).dtype == "bf16")
    assert bool(MODEL.candidates(kernel, MODEL.read({**LAYER, **fields}), load("sm_90a"))) is served


@pytest.mark.parametrize("fields", [
    {}, {"bias": True}, {"residual": True}, {"bias": True, "residual": True, "activation": "tanh"},
])  # fmt: skip
def test_a_kernel_of_any_epilogue_serves_each_and_costs_no_less(fields: dict[str, Any]) -> None:
    arch = load("x86_64_v4")
    packed = {"op": "convolution", "direction": "forward", "dtype": "bf16", "layout": "ndhwgc", "vector": [1, 1, 1]}
    packed |= {"tile": [448, 4096, 768], "warp_tile": [14, 32, 1]}
    exact, any_one = (parse_kernel({**packed, **epilogue}, arch) for epilogue in (fields, {"activation": "any"}))
    times = [MODEL.microseconds(kernel, MODEL.read({**LAYER, **fields}), arch) for kernel in (exact, any_one)]
    assert None not in times and times[0] < times[1]  # type: ignore[operator]


def test_depthwise_kernels_serve_one_channel_per_group() -> None:
    kernel = next(one for one in kernels("sm_90a") if conv_spec(one).depthwise and conv_spec(one).dtype == "bf16")
    layer = {**LAYER, "groups": 64, "k": 64}
    for fields, served in (
        ({}, True),
        ({"filter": [4, 4]}, False),
        ({"stride": 3}, False),
        ({"dilation": 2}, False),
        ({"groups": 1}, False),
        ({"stride_x": [60000, 1, 1801, 64]}, False),
    ):
        assert bool(MODEL.candidates(kernel, MODEL.read({**layer, **fields}), load("sm_90a"))) is served, fields


def test_vectors_and_beta_of_amd_kernels() -> None:
    kernel = next(one for one in kernels("gfx942") if conv_spec(one).dtype == "bf16")
    vector = conv_spec(kernel).vector
    assert vector.a > 1
    wide = {"size": [2048, 2048], "n": 2}  # byte offsets do not fit into 31 bits
    for fields, served in (({}, True), ({"c": 63}, False), ({"k": 129}, False), ({"beta": 1.0}, False), (wide, False)):
        assert bool(MODEL.candidates(kernel, MODEL.read({**LAYER, **fields}), load("gfx942"))) is served, fields


def test_slices_are_those_of_backward_weight() -> None:
    (kernel, *_) = kernels("sm_90a", "backward_weight")
    problem = MODEL.read({**LAYER, "direction": "backward_weight"})
    assert slices(conv_spec(kernel), problem, "cutlass") == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]
    assert slices(
        conv_spec(kernel), MODEL.read({**LAYER, "direction": "backward_weight", "split_k": 5}), "cutlass"
    ) == [5]
    assert slices(conv_spec(kernel), MODEL.read({**LAYER, "split_k": 1}), "cutlass") == [1]
    assert slices(conv_spec(kernels("x86_64_v4", "backward_weight")[0]), problem, "cpu") == [1]


def test_epilogues_are_fitted_to_problems() -> None:
    kernel = next(one for one in kernels("x86_64_v4") if conv_spec(one).dtype == "fp32")
    spec = MODEL.fitted(kernel, MODEL.read({**LAYER, "dtype": "fp32", "bias": True, "activation": "gelu"}))
    assert spec is not None and (spec.bias, spec.residual, spec.activation) == (True, False, "gelu")
    assert MODEL.fitted(kernel, MODEL.read(LAYER)) is None


def test_problems_that_mean_the_same_have_one_key() -> None:
    dense = {"stride_x": [28 * 28 * 64, 1, 28 * 64, 64], "stride": [1, 1], "pad_right": [1, 1], "layout": "nhwgc"}
    assert MODEL.key(MODEL.read(LAYER)) == MODEL.key(MODEL.read({**LAYER, **dense}))
    row = {"direction": "forward", "n": "8", "c": "64", "k": "128", "g": "1", "di": "1", "hi": "28", "wi": "28"}
    row |= {"z": "1", "y": "3", "x": "3", "dtype": "bf16"}
    row |= {f"{word}_{axis}": "1" for word in ("stride", "pad", "dilation") for axis in "dhw"}
    assert MODEL.key(MODEL.measured(row)) == MODEL.key(MODEL.read(LAYER))  # type: ignore[arg-type]
    assert MODEL.measured({"m": "1"}) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tile": 3}, "a convolution has unknown fields tile"),
        ({"n": "8"}, "is no convolution"),
        ({"size": [28]}, r"filter is \(3, 3\); allowed: 1 numbers, one for each dimension of size"),
        ({"groups": 3}, "c is 64; allowed: multiples of groups = 3"),
        ({"filter": [64, 64]}, "the filter reaches over 64 points along dimension 0, more than size 28"),
        ({"layout": "nwgc"}, "layout is 'nwgc' and size has 2 extents; allowed: nhwgc"),
        ({"stride_x": [1, 2]}, r"stride_x is \(1, 2\); allowed: 4 strides"),
        ({"direction": "sideways"}, "is no convolution"),
        ({"bias": "yes"}, "bias is 'yes'; allowed: true or false"),
        ({"alpha": True}, "alpha is True; allowed: a finite number"),
    ],
)
def test_wrong_problems_say_why(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        MODEL.read({**LAYER, **fields})
    with pytest.raises(SpecError, match="a convolution lacks n, c, k, size, filter"):
        MODEL.read({"direction": "forward"})


def test_refusals_are_the_sentences_of_launchers() -> None:
    kernel = next(one for one in kernels("gfx942") if conv_spec(one).dtype == "bf16")
    for fields, sentence in (
        ({"dtype": "fp16"}, "dtype_x is fp16, this kernel serves bf16"),
        ({"bias": True}, "the problem has a bias, this kernel adds none"),
        ({"c": 63}, "c per group = 63 is not a multiple of"),
        ({"beta": 0.5}, "beta is 0.5, this kernel serves 0"),
        ({"size": [2048, 2048], "n": 2}, "y spans 2 images of 536870912 elements: its byte offsets do not fit"),
    ):
        assert sentence in str(refusal(conv_spec(kernel), MODEL.read({**LAYER, **fields}), load("gfx942")))
