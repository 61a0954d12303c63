"""C++ symbols of CPU kernels: every member that the rules allow has one, and the header instantiates it."""

from __future__ import annotations

import itertools

import pytest

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution import cpu
from kernelwright.codegen.operations.convolution.rule_sets import rule_set
from kernelwright.codegen.operations.convolution.spec import OPS, Direction
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import IllegalKernelError
from kernelwright.problems.convolution.description import ConvLayout

PACKED = {
    "op": "convolution", "direction": "forward", "dtype": "fp32", "layout": "nhwgc", "tile": [28, 64, 16],
    "warp_tile": [14, 32, 1],
}  # fmt: skip
DIRECT = {"op": "convolution", "direction": "forward", "dtype": "fp32", "layout": "ngchw", "depthwise": True}


def test_every_direction_and_layout_has_an_enumerator() -> None:
    assert {one for one in Direction if OPS[one].c_name} == set(Direction)
    assert [one.c_name for one in ConvLayout] == [f"KW_CONV_{one.upper()}" for one in ConvLayout]


@pytest.mark.parametrize("name", ["essential", "tests"])
@pytest.mark.parametrize("arch", ["x86_64_v3", "x86_64_v4"])
def test_shipped_kernels_are_legal_and_render(name: str, arch: str) -> None:
    model, seen = load(arch), set()
    for spec in rule_set(name, model):
        kernel = Kernel(arch=arch, spec=spec)
        assert validate(kernel, model) == ()
        (header,) = render_kernel(kernel, model, "cpu")
        assert kernel.name not in seen and "convolution<KW_OP_CONV_" in header.text
        seen.add(kernel.name)
    assert {"forward", "backward_data", "backward_weight"} == {spec.direction for spec in rule_set(name, model)}


def test_the_context_names_types() -> None:
    kernel = parse_kernel({**PACKED, "dtype": "bf16", "warp_tile": [14, 32, 2]}, load("x86_64_v4"))
    context = cpu.context(kernel, load("x86_64_v4"))
    assert context["operation"] == "bf16_dot" and context["features"] == "avx512_bf16"
    assert context["required_features"] == "kAvx512Bf16" and context["layout"] == "KW_CONV_NHWGC"
    fused = parse_kernel({**PACKED, "bias": True, "residual": True, "activation": "silu"}, load("x86_64_v4"))
    assert cpu.context(fused, load("x86_64_v4"))["epilogue"] == "epilogue<fp32, 2, KW_D_ADD, silu>"
    context = cpu.context(parse_kernel({**PACKED, "activation": "any"}, load("x86_64_v4")), load("x86_64_v4"))
    assert context["epilogue"] == "any_epilogue<fp32>" and context["activation"] == "KW_ACTIVATION_ANY"
    assert (context["bias"], context["residual"]) == (1, 1)


@pytest.mark.parametrize(
    ("arch", "raw", "rule"),
    [
        ("x86_64_v4", {**PACKED, "direction": "backward_weight", "dtype": "bf16", "warp_tile": [14, 32, 2]}, "depth"),
        ("x86_64_v4", {**PACKED, "warp_tile": [16, 32, 1], "tile": [32, 64, 16]}, "registers"),
        ("x86_64_v3", PACKED, "registers"),
        ("x86_64_v4", {**PACKED, "tile": [28, 64, 8192]}, "caches"),
        ("x86_64_v4", {**PACKED, "specialization": "filter1x1_pad0"}, "features"),
        ("x86_64_v4", {**PACKED, "num_groups_to_merge": 2}, "features"),
        ("x86_64_v4", {**PACKED, "pad": {"m": False}}, "features"),
        ("x86_64_v4", {**DIRECT, "filter": [3, 3]}, "features"),
        ("x86_64_v4", {**DIRECT, "direction": "backward_data"}, "planes"),
        ("x86_64_v4", {**DIRECT, "bias": True}, "planes"),
        ("x86_64_v4", {**DIRECT, "activation": "any"}, "planes"),
    ],
)
def test_each_rule_refuses_by_itself(arch: str, raw: dict[str, object], rule: str) -> None:
    with pytest.raises(IllegalKernelError) as caught:
        parse_kernel(raw, load(arch))
    assert {violation.rule for violation in caught.value.violations} == {f"conv_cpu.{rule}"}


def test_names_of_shipped_kernels_differ() -> None:
    for arch, name in itertools.product(("x86_64_v3", "x86_64_v4"), ("essential", "tests")):
        names = [Kernel(arch=arch, spec=spec).name for spec in rule_set(name, load(arch))]
        assert len(set(names)) == len(names)
