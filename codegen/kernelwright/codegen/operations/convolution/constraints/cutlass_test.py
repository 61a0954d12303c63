from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright import arch as archs
from kernelwright.codegen.fields import COMPILED_ACTIVATIONS, Activation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.convolution import cutlass
from kernelwright.codegen.operations.convolution.rule_sets import rule_set
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.testing.strategies import specs
from kernelwright.codegen.selecting.specs import parse_spec
from kernelwright.codegen.selecting.validate import validate

ARCH = archs.load("sm_90a")
LEGAL: dict[str, Any] = {
    **{"op": "convolution", "direction": "forward", "dtype": "bf16", "layout": "ndhwgc", "tile": [128, 128, 64]},
    **{"wave": [1, 1, 1], "warp_tile": [64, 128, 16], "pipeline": "tma", "scheduler": "pingpong"},
}
WEIGHT = {"direction": "backward_weight", "two_stage": True}


def broken(fields: dict[str, Any]) -> set[str]:
    spec = parse_spec({**LEGAL, **fields}, ARCH)
    return {violation.rule for violation in validate(Kernel(arch="sm_90a", spec=spec), ARCH)}


@pytest.mark.parametrize("direction", [{}, {"direction": "backward_data"}, WEIGHT])
@pytest.mark.parametrize("layout", ["nwgc", "nhwgc", "ndhwgc"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_legal_everywhere(direction: dict[str, Any], layout: str, dtype: str) -> None:
    assert broken({**direction, "layout": layout, "dtype": dtype}) == set()


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("conv_cutlass.wave", {"wave": [2, 1, 1]}),
        ("conv_cutlass.warp_tile", {"warp_tile": [64, 64, 16]}),
        ("conv_cutlass.accumulators", {"tile": [128, 192, 64], "warp_tile": [64, 192, 16]}),
        ("conv_cutlass.two_stage", {"direction": "backward_weight"}),
        ("conv_cutlass.stream_k", {**WEIGHT, "two_stage": False, "stream_k": "linear"}),
        ("conv_cutlass.features", {"specialization": "filter1x1_stride1_pad0"}),
        ("conv_cutlass.features", {"pad": [True, False, True]}),
        ("conv_cutlass.features", {"num_groups_to_merge": 2}),
        ("convolution.dtype", {"dtype": "fp32"}),
        ("convolution.vector", {"vector": [8, 1, 1]}),
        ("convolution.tile_limits", {"tile": [128, 128, 32]}),
    ],
)
def test_each_is_refused_by_its_own_rule(rule: str, fields: dict[str, Any]) -> None:
    assert rule in broken(fields)


@settings(max_examples=100, deadline=None)
@given(specs())
def test_rules_never_raise_and_say_what_is_allowed(spec: GroupedConvSpec) -> None:
    for violation in validate(Kernel(arch="sm_90a", spec=spec), ARCH):
        assert violation.field and violation.message and violation.allowed


def test_every_activation_has_a_function() -> None:
    assert set(cutlass.ACTIVATIONS) == {*COMPILED_ACTIVATIONS, Activation.ANY}


def test_essential_has_at_most_two_kernels_for_each_variant_and_dtype() -> None:
    pairs = [(spec.variant, spec.dtype) for spec in rule_set("essential", ARCH)]
    assert {*Direction, *(f"{direction}_depthwise" for direction in Direction)} == {variant for variant, _ in pairs}
    assert all(pairs.count(one) <= 2 for one in pairs)


def test_what_ships_is_in_the_release_set() -> None:
    release = set(rule_set("release", ARCH))
    assert set(rule_set("essential", ARCH)) <= release
    assert {spec.dtype for spec in release} == {"bf16", "fp16"}
    amd = archs.load("gfx942")  # nothing was measured there
    assert set(rule_set("essential", amd)) < set(rule_set("coverage", amd)) == set(rule_set("release", amd))


@given(st.sampled_from(rule_set("default", ARCH)))
def test_headers_name_what_specs_say(spec: GroupedConvSpec) -> None:
    kernel = Kernel(arch="sm_90a", spec=spec)
    context = cutlass.context(kernel, ARCH)
    assert validate(kernel, ARCH) == ()
    assert context["element"] == {"bf16": "cutlass::bfloat16_t", "fp16": "cutlass::half_t"}[spec.dtype]
    assert operation("convolution").expects(kernel, ARCH).matrix_instructions != spec.depthwise
