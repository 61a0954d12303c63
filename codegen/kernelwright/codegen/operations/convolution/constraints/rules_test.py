from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.codegen.operations.convolution.testing.strategies import LEGAL, specs
from kernelwright.codegen.selecting.specs import parse_kernel, parse_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import IllegalKernelError, Violation

WEIGHT = {"direction": "backward_weight"}
DEPTHWISE = {
    **{"op": "convolution", "direction": "forward", "dtype": "fp16", "layout": "ngchw", "depthwise": True},
    **{"image_tile": [8, 8], "filter": [3, 3], "stride": [1, 1], "padding": [1, 1], "subtile": [2, 2], "images": 8},
}


def violations(fields: dict[str, Any], arch: str = "gfx942") -> tuple[Violation, ...]:
    loaded = archs.load(arch)
    return validate(Kernel(arch=arch, spec=parse_spec(fields, loaded)), loaded)


def broken(fields: dict[str, Any], arch: str = "gfx942") -> set[str]:
    return {violation.rule for violation in violations({**LEGAL, **fields}, arch)}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
@pytest.mark.parametrize("layout", ["nwgc", "nhwgc", "ndhwgc"])
def test_legal_everywhere(arch: str, direction: str, layout: str) -> None:
    assert broken({"direction": direction, "layout": layout}, arch) == set()


# Each breaks exactly the one rule.
ALONE: list[tuple[str, dict[str, Any]]] = [
    ("convolution.layout", {"layout": "ngchw"}),
    ("convolution.traits", {"scheduler": "interwave"}),
    ("convolution.traits", {"pipeline": "compv4", "double_smem_buffer": False}),
    ("convolution.vector", {"vector": [8, 8, 32]}),
    ("convolution.depthwise", {"images": 2}),
    ("convolution.specialization", {**WEIGHT, "specialization": "filter3x3"}),
    ("convolution.epilogue", {**WEIGHT, "bias": True}),
    ("convolution.epilogue", {"direction": "backward_data", "activation": "relu"}),
    ("convolution.epilogue", {"activation": "any", "bias": True}),
    ("convolution.shared_sum", {"two_stage": True}),
    ("convolution.shared_sum", {"stream_k_persistent": True}),
    ("ck_tile_conv.pipeline", {"pipeline": "wavelet"}),
    ("ck_tile_conv.pipeline", {"pipeline": "basic_async_v1"}),
    ("ck_tile_conv.stream_k", {**WEIGHT, "stream_k": "tree"}),
    ("ck_tile_conv.split_image", {"split_image": True}),
    ("ck_tile_conv.merged_groups", {"num_groups_to_merge": 2}),
    ("ck_tile_conv.wave_groups", {"num_wave_groups": 2}),
    ("ck_tile_conv.padding", {"pad": [True, True, False]}),
    ("ck_tile_conv.double_smem_buffer", {"double_smem_buffer": True}),
    ("ck_tile_conv.wave_k", {"tile": [128, 128, 32], "wave": [2, 1, 2]}),
    ("ck_tile_conv.copy_pattern", {"tile": [64, 64, 128], "vector": [1, 8, 8]}),
    ("ck_tile_conv.cshuffle_repeat", {"tile": [192, 128, 32]}),
    ("ck_tile_conv.accumulators", {"tile": [256, 256, 32], "pipeline": "compv6"}),
]


@pytest.mark.parametrize(("rule", "fields"), ALONE)
def test_each_is_refused_by_its_own_rule(rule: str, fields: dict[str, Any]) -> None:
    assert broken(fields) == {rule}


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("convolution.dtype", {"dtype": "fp8"}),
        ("convolution.vector", {"vector": [3, 8, 8]}),
        ("convolution.divisibility", {"tile": [96, 128, 32]}),
        ("convolution.tile_limits", {"tile": [528, 128, 32], "warp_tile": [16, 16, 32], "wave": [1, 4, 1]}),
        ("convolution.wave_set", {"wave": [4, 4, 1]}),
        ("convolution.warp_tile_set", {"warp_tile": [32, 32, 4]}),
        ("convolution.pipeline", {"pipeline": "packed", "epilogue": "default", "scheduler": "default"}),
        ("convolution.merged_groups", {"num_groups_to_merge": 3}),
        ("convolution.lds_budget", {"tile": [256, 256, 128]}),
        ("convolution.split_image", {"direction": "backward_data", "split_image": True}),
        ("ck_tile_conv.lds", {"tile": [256, 256, 128]}),
        ("ck_tile_conv.workgroup", {"wave": [8, 4, 1], "tile": [256, 128, 32]}),
    ],
)
def test_others_break_more_than_one(rule: str, fields: dict[str, Any]) -> None:
    assert rule in broken(fields)


INTERWAVE = {**WEIGHT, "pipeline": "mem", "scheduler": "interwave", "vector": [1, 1, 1]}


@pytest.mark.parametrize(
    ("tile", "wave", "warp_tile"),
    [
        ([64, 64, 64], [2, 2, 1], [16, 16, 32]),
        ([64, 16, 64], [2, 1, 1], [16, 16, 32]),
        ([16, 32, 64], [1, 2, 1], [16, 16, 32]),
    ],
)
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_known_bad_gradients_of_weights_are_refused_for_what_is_bad(
    tile: list[int], wave: list[int], warp_tile: list[int], dtype: str
) -> None:
    known_bad = {**INTERWAVE, "dtype": dtype, "tile": tile, "wave": wave, "warp_tile": warp_tile}
    assert broken(known_bad) == {"ck_tile_conv.interwave_weight"}
    assert broken({**known_bad, "scheduler": "intrawave"}) == set()
    one_wave = {**known_bad, "wave": [1, 1, 1], "tile": [16, 16, 64]}
    assert broken(one_wave) == set()


@pytest.mark.parametrize("direction", ["backward_data", "backward_weight"])
def test_fp32_is_not_transposed_as_it_is_read_from_lds(direction: str) -> None:
    fp32 = {"direction": direction, "dtype": "fp32", "warp_tile": [32, 32, 8]}
    assert broken(fp32, "gfx950") == {"ck_tile_conv.warp_tile"}
    assert broken(fp32, "gfx942") == broken({**fp32, "direction": "forward"}, "gfx950") == set()


def test_depthwise_kernels_are_well_formed_and_without_a_kernel_on_amd() -> None:
    assert {violation.rule for violation in violations(dict(DEPTHWISE))} == {"ck_tile_conv.depthwise"}
    rules = {violation.rule for violation in violations({**DEPTHWISE, "filter": [4, 4], "two_stage": True})}
    assert {"convolution.filter", "convolution.depthwise", "convolution.shared_sum"} <= rules


@settings(max_examples=100, deadline=None)
@given(specs(), st.sampled_from(("gfx90a", "gfx942", "gfx950")))
def test_rules_never_raise_and_say_what_is_allowed(spec: GroupedConvSpec, name: str) -> None:
    arch = archs.load(name)
    ids = {rule.id for rule in operation("convolution").rules(arch.backend)}
    for violation in validate(Kernel(arch=name, spec=spec), arch):
        assert violation.rule in ids and violation.field and violation.message and violation.allowed


def test_rules_are_named_once_and_say_why() -> None:
    rules = operation("convolution").rules("ck_tile")
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.reason for rule in rules)


def test_the_nearest_legal_kernel_is_offered() -> None:
    with pytest.raises(IllegalKernelError) as caught:
        parse_kernel({**LEGAL, "warp_tile": [32, 32, 4]}, archs.load("gfx942"))
    text = str(caught.value)
    assert "convolution.warp_tile_set: warp_tile = 32x32x4" in text and "nearest legal kernel: warp_tile = " in text
