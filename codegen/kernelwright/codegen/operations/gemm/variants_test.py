from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.gemm.spec import GemmSpec, gemm_spec
from kernelwright.codegen.operations.gemm.variants import ELEMENTWISE, configs_of
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.specs import parse_spec
from kernelwright.codegen.violations import SpecError

GFX942 = archs.load("gfx942")
# In the form of CK Tile's default_config.json, whose lists stand alone.
CK_TILE_CONFIG: dict[str, Any] = {
    "op": "gemm",
    "problem": {"dtype": "fp16", "layout": "rcr"},
    "tile_config": {
        "tile_m": [128, 256],
        "tile_n": [128],
        "tile_k": [32],
        "warp_m": [2, 4],
        "warp_n": [2],
        "warp_k": [1],
        "warp_tile_m": [16, 32],
        "warp_tile_n": [16, 32],
        "warp_tile_k": [16],
    },
    "trait_config": {
        "pipeline": ["compv4"],
        "epilogue": ["cshuffle"],
        "scheduler": ["intrawave"],
        "pad_m": [False],
        "persistent": [False],
    },
    "multi_d_config": {"elementwise_ops": ["MultiDAdd", "Relu", "Gelu"], "num_d_tensors": [1, 2]},
}


def parts(**changes: Any) -> list[tuple[str | None, dict[str, Any]]]:
    return configs_of({**CK_TILE_CONFIG, **changes}, GFX942)


def test_the_familiar_form_is_read_and_pruned() -> None:
    kernels = expand_config(CK_TILE_CONFIG, GFX942).kernels
    assert {gemm_spec(kernel).variant for kernel in kernels} == {"standard"}
    assert {(gemm_spec(kernel).wave.m, gemm_spec(kernel).wave.n) for kernel in kernels} == {(2, 2)}, (
        "4x2 waves are not gfx942's"
    )
    assert not any(gemm_spec(kernel).pad.m for kernel in kernels)
    values = {key: {"values": value} for key, value in CK_TILE_CONFIG["tile_config"].items()}
    assert expand_config({**CK_TILE_CONFIG, "tile_config": values}, GFX942).kernels == kernels


def test_without_variants_a_configuration_is_itself() -> None:
    assert parts() == [(None, {key: value for key, value in CK_TILE_CONFIG.items() if key != "multi_d_config"})]


@pytest.mark.parametrize(
    ("variant", "fields"),
    [
        ("standard", [{}]),
        ("batched", [{"batched": True}]),
        ("grouped", [{"grouped": True}]),
        ("stream_k", [{"stream_k": "linear"}, {"stream_k": "tree"}]),
        ("preshuffle", [{"pipeline": "preshufflev2", "preshuffle": True}]),
    ],
)
def test_a_variant_adds_its_fields(variant: str, fields: list[dict[str, Any]]) -> None:
    configs = parts(variants=[variant])
    assert [config["problem"] for _, config in configs] == [{**CK_TILE_CONFIG["problem"], **one} for one in fields]
    assert {name for name, _ in configs} == {variant}
    assert ("pipeline" in configs[0][1]["trait_config"]) == (variant != "preshuffle")


def test_multi_d_takes_operations_and_numbers() -> None:
    problems = [config["problem"] for _, config in parts(variants=["multi_d"])]
    assert [(one["d_op"], one["activation"], one["num_d"]) for one in problems] == [
        ("add", "none", 1), ("add", "none", 2), ("add", "relu", 1), ("add", "relu", 2), ("add", "gelu", 1),
        ("add", "gelu", 2),
    ]  # fmt: skip
    by_default = configs_of({"variants": ["multi_d"]}, GFX942)
    assert [config["problem"]["d_op"] for _, config in by_default] == ["add", "add", "multiply", "multiply"]
    tile = {"tile": [128, 128, 32], "wave": [2, 2, 1], "warp_tile": [32, 32, 16], "pipeline": "compv3", "num_d": 1}
    for d_op, activation in ELEMENTWISE.values():
        spec = parse_spec(
            {"op": "gemm", "dtype": "fp16", "layout": "rcr", **tile, "d_op": d_op, "activation": activation}, GFX942
        )
        assert isinstance(spec, GemmSpec) and spec.variant == "multi_d"


def test_what_a_configuration_states_itself_stays() -> None:
    traits = {**CK_TILE_CONFIG["trait_config"], "num_d": [0, 3]}
    (one,) = parts(variants=["multi_d"], trait_config=traits)
    assert one == ("multi_d", {**one[1], "trait_config": traits, "problem": CK_TILE_CONFIG["problem"]})
    kernels = expand_config({**CK_TILE_CONFIG, "trait_config": traits, "variants": ["standard"]}, GFX942).kernels
    assert kernels == expand_config(CK_TILE_CONFIG, GFX942).kernels, "of other variants there are none"
    only_three = {**CK_TILE_CONFIG, "trait_config": {**traits, "num_d": [3]}, "variants": ["standard"]}
    with pytest.raises(EmptyExpansionError, match=r"asks for another variant|ck_tile\.variants"):
        expand_config(only_three, GFX942)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variants": []}, "write a list of different words of standard, preshuffle"),
        ({"variants": "standard"}, "write a list of different words"),
        ({"variants": ["standard", "standard"]}, "write a list of different words"),
        ({"variants": ["multid"]}, r"unknown variant 'multid' \(did you mean 'multi_d'\?\); allowed: standard"),
        ({"multi_d_config": {"ops": []}}, "write an object with elementwise_ops, num_d_tensors"),
        ({"multi_d_config": {"num_d_tensors": []}}, "lists of at least one value"),
        ({"multi_d_config": {"elementwise_ops": ["Gelo"]}}, r"unknown elementwise_ops 'Gelo' \(did you mean 'Gelu'"),
        ({"multi_d_config": {"elementwise_ops": [["Gelu"]]}}, "unknown elementwise_ops"),
        ({"multi_d_config": {"num_d_tensors": ["1"]}, "variants": ["multi_d"]}, "num_d"),
        ({"variants": ["batched"], "problem": []}, "section 'problem' must be an object"),
        ({"variants": ["batched"], "tile_config": 3}, "section 'tile_config' must be an object"),
        ({"multiD": {}}, "unknown section 'multiD'"),
        ({"op": "gemm", "tile_config": {"tile": [128, 128, 32]}}, "write "),
    ],
)
def test_wrong_configurations(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        expand_config({**CK_TILE_CONFIG, **changes}, GFX942)
