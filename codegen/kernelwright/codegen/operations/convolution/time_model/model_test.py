from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.spec import conv_spec
from kernelwright.codegen.operations.convolution.time_model import hopper, processors, tiles
from kernelwright.codegen.operations.convolution.time_model.model import ConvTimeModel
from kernelwright.codegen.operations.convolution.time_model.slices import slices
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

NATIVE = Path(__file__).resolve().parents[6] / "dispatcher_cpp"
MODEL = ConvTimeModel()
LAYER: dict[str, Any] = {"direction": "forward", "n": 8, "c": 64, "k": 128, "size": [28, 28], "filter": [3, 3]}
LAYER |= {"pad_left": [1, 1], "dtype": "bf16"}


@pytest.mark.parametrize(
    ("module", "file"), [(hopper, "estimate_cuda.cpp"), (tiles, "estimate.cpp"), (processors, "estimate_cpu.cpp")]
)
def test_numbers_are_those_of_the_dispatcher(module: Any, file: str) -> None:
    text = (NATIVE / "src/operations/convolution" / file).read_text()
    found = dict(re.findall(r"\b(k[A-Z]\w+) = ([-+.\de]+)(?=[,;])", text))
    # No kernel leaves slices for a second launch.
    assert {name: float(value) for name, value in found.items() if name != "kSecondLaunchUs"} == module.NUMBERS


def test_images_are_folded_as_launchers_do() -> None:
    text = (NATIVE / "include/kernelwright/convolution/folding.h").read_text()
    assert {name: int(value) for name, value in re.findall(r"#define KW_CONV_FOLD_(\w+) (\d+)", text)} == hopper.FOLD


def kernels(arch: str, direction: str = "forward") -> list[Kernel]:
    found = [*expand_set("conv_essential", load(arch)).kernels]
    if arch == "sm_90a":
        found += expand_set("conv_default", load(arch)).kernels
    return [one for one in found if conv_spec(one).direction == direction]


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "x86_64_v4"])
@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
def test_more_images_never_take_less_time(arch: str, direction: str) -> None:
    found, served = load(arch), 0
    for kernel in kernels(arch, direction):
        dtype = str(conv_spec(kernel).dtype)
        few, many = (MODEL.read({**LAYER, "direction": direction, "dtype": dtype, "n": n}) for n in (1, 64))
        low, high = MODEL.microseconds(kernel, few, found), MODEL.microseconds(kernel, many, found)
        assert (low is None) == (high is None) and (low is None or 0 < low <= high)  # type: ignore[operator]
        served += low is not None
    assert served


@pytest.mark.parametrize(
    ("fields", "served"),
    [
        ({}, True),
        ({"dtype": "fp16"}, False),
        ({"direction": "backward_data"}, False),
        ({"bias": True}, False),
        ({"activation": "relu"}, False),
        ({"size": [28, 28, 28], "filter": [3, 3, 3], "pad_left": 1}, True),
        ({"size": 28, "filter": 3, "pad_left": 1}, True),
        ({"layout": "ngchw"}, False),
        ({"groups": 64, "k": 64}, True),
        ({"c": 63}, True),
        ({"pad_right": [0, 2]}, True),
    ],
)
def test_what_a_plain_kernel_serves(fields: dict[str, Any], served: bool) -> None:
    kernel = next(one for one in kernels("sm_90a") if conv_spec(one).dtype == "bf16")
    assert bool(MODEL.ways(kernel, MODEL.read({**LAYER, **fields}), load("sm_90a"))) is served


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
        assert bool(MODEL.ways(kernel, MODEL.read({**layer, **fields}), load("sm_90a"))) is served, fields


def test_vectors_and_beta_of_amd_kernels() -> None:
    kernel = next(one for one in kernels("gfx942") if conv_spec(one).dtype == "bf16")
    vector = conv_spec(kernel).vector
    assert vector.a > 1
    for fields, served in (({}, True), ({"c": 63}, False), ({"k": 129}, False), ({"beta": 1.0}, False)):
        assert bool(MODEL.ways(kernel, MODEL.read({**LAYER, **fields}), load("gfx942"))) is served, fields


def test_slices_are_those_of_backward_weight() -> None:
    (kernel, *_) = kernels("sm_90a", "backward_weight")
    posed = MODEL.read({**LAYER, "direction": "backward_weight"})
    assert slices(conv_spec(kernel), posed, "cutlass") == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]
    assert slices(
        conv_spec(kernel), MODEL.read({**LAYER, "direction": "backward_weight", "split_k": 5}), "cutlass"
    ) == [5]
    assert slices(conv_spec(kernel), MODEL.read({**LAYER, "split_k": 1}), "cutlass") == [1]
    assert slices(conv_spec(kernels("x86_64_v4", "backward_weight")[0]), posed, "cpu") == [1]


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
        ({"size": [28]}, "filter is .* and size has 1 extents"),
        ({"groups": 3}, "groups divide c and k"),
        ({"filter": [64, 64]}, "the filter leaves an output"),
        ({"layout": "nwgc"}, "layout is nwgc and size has 2 extents"),
        ({"stride_x": [1, 2]}, "are not those of 2 dimensions"),
        ({"direction": "sideways"}, "is no convolution"),
    ],
)
def test_wrong_problems_say_why(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        MODEL.read({**LAYER, **fields})
    with pytest.raises(SpecError, match="a convolution lacks n, c, k, size, filter"):
        MODEL.read({"direction": "forward"})
