from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.name import kernel_name
from kernelwright.codegen.operations.convolution.rule_sets import rule_set
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.codegen.operations.convolution.testing.strategies import LEGAL, specs
from kernelwright.codegen.selecting.specs import parse_spec

GFX942 = archs.load("gfx942")


def named(**fields: Any) -> str:
    spec = parse_spec({**LEGAL, **fields}, GFX942)
    assert isinstance(spec, GroupedConvSpec)
    return kernel_name(spec)


@settings(max_examples=200, deadline=None)
@given(specs(), specs())
def test_names_tell_specs_apart(one: GroupedConvSpec, other: GroupedConvSpec) -> None:
    names = {kernel_name(one), kernel_name(other)}
    assert len(names) == (1 if one == other else 2)
    assert all(re.fullmatch(r"[a-zA-Z0-9_]{1,240}", name) for name in names)


@settings(max_examples=100, deadline=None)
@given(specs())
def test_canonical_json_holds_the_whole_kernel(spec: GroupedConvSpec) -> None:
    kernel = Kernel(arch="gfx942", spec=spec)
    assert Kernel.model_validate_json(kernel.canonical_json) == kernel


def test_names_of_the_largest_set_are_unique() -> None:
    members = rule_set("full", archs.load("gfx950"))
    assert len({kernel_name(spec) for spec in members}) == len(members)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (
            {"vector": [4, 8, 8]},
            "grouped_conv_fwd_fp16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16",
        ),
        ({}, "grouped_conv_fwd_fp16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_vec8_8_8"),
        (
            {"direction": "backward_weight", "layout": "ndhwgc", "pipeline": "compv4", "two_stage": True},
            "grouped_conv_bwd_weight_fp16_ndhwgc_3d_compv4_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_vec8_8_8_dsb"
            "_2stage",
        ),
        (
            {"num_groups_to_merge": 8, "specialization": "filter3x3", "split_image": True, "pad": [True, False, True]},
            "grouped_conv_fwd_fp16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_vec8_8_8_gm8_filter3x3"
            "_large_tensor_padMK",
        ),
        (
            {"bias": True, "residual": True, "activation": "fast_gelu"}
            | {"stream_k": "tree", "stream_k_persistent": True},
            "grouped_conv_fwd_fp16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_vec8_8_8_streamk_tree"
            "_persistent_bias_residual_fastgelu",
        ),
    ],
)
def test_the_grammar(fields: dict[str, Any], name: str) -> None:
    assert named(**fields) == name


def test_depthwise_names() -> None:
    raw = {
        **{"op": "convolution", "direction": "forward", "dtype": "fp32", "layout": "ngchw", "depthwise": True},
        **{"image_tile": [8, 8], "filter": [3, 3], "stride": [1, 1], "padding": [1, 1], "subtile": [2, 2], "images": 8},
        "vector": [2, 1, 2],
    }
    spec = parse_spec(raw, GFX942)
    assert isinstance(spec, GroupedConvSpec)
    assert kernel_name(spec) == (
        "grouped_conv_fwd_depthwise_fp32_ngchw_2d_direct_default_default_1x1x1_1x1x1_1x1x1_vec2_1_2_it8x8_f3x3_s1x1_p1x1"
        "_nb8_sub2x2"
    )
