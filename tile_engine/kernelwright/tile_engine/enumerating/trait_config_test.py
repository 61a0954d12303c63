from __future__ import annotations

from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.filters import view
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.testing.expansions import expand_set
from kernelwright.codegen.violations import SpecError
from kernelwright.tile_engine.enumerating import trait_config
from kernelwright.tile_engine.enumerating.trait_config import enumerate_kernels, with_options
from kernelwright.tile_engine.enumerating.variants import VARIANTS, variant

GFX942 = load("gfx942")
FORWARD: dict[str, Any] = {
    "variant": "forward",
    "trait_config": {
        "data_type": {"values": ["bf16"]},
        "pipeline": {"values": ["compv3", "compv4"]},
        "wave_mode": {"values": ["intrawave"]},
        "ndim_spatial": {"values": [2]},
    },
}
PRODUCT: dict[str, Any] = {
    "variant": "gemm_universal",
    "problem": {"data_type": "fp16", "layout": "rcr"},
    "tile_config": {
        **{"tile_m": {"min": 64, "max": 256, "step": 64, "exclude": [192]}, "tile_n": [128], "tile_k": [64]},
        **{"warp_m": [2], "warp_n": [2], "warp_k": [1], "warp_tile_m": [32], "warp_tile_n": [32], "warp_tile_k": [16]},
    },
    "trait_config": {"pipeline": ["compv3", "mem"], "scheduler": ["intrawave"], "epilogue": ["cshuffle"]},
}


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trait_config, "expand_set", expand_set)


def test_traits_narrow_the_tables_of_an_operation() -> None:
    kernels = enumerate_kernels(FORWARD, GFX942)
    seen = [view(kernel) for kernel in kernels]
    assert {one["pipeline"] for one in seen} == {"compv3", "compv4"}
    assert {(one["direction"], one["dtype"], one["scheduler"], one["spatial_dims"]) for one in seen} == {
        ("forward", "bf16", "intrawave", 2)
    }
    names = [kernel.name for kernel in kernels]
    assert names == sorted(set(names)) and not any(validate(kernel, GFX942) for kernel in kernels)
    wider = {**FORWARD, "trait_config": {key: FORWARD["trait_config"][key] for key in ("data_type", "ndim_spatial")}}
    assert set(kernels) < set(enumerate_kernels(wider, GFX942))


@pytest.mark.thorough(instead="test_tiles_span_a_product_of_all_fields")
def test_a_range_of_values_is_one_more_way_to_list_them() -> None:
    traits = {"data_type": ["bf16"], "mask": ["none"], "bias": ["none"], "group": [False]}
    ranged = {"variant": "fmha_fwd", "trait_config": {**traits, "hdim": {"min": 64, "max": 128, "step": 64}}}
    listed = {"variant": "fmha_fwd", "trait_config": {**traits, "hdim": [64, 128]}}
    kernels = enumerate_kernels(ranged, GFX942)
    assert kernels == enumerate_kernels(listed, GFX942)
    assert {(view(one)["hdim"], view(one)["family"], view(one)["group"]) for one in kernels} == {
        (64, "fwd", False),
        (128, "fwd", False),
    }


def test_tiles_span_a_product_of_all_fields() -> None:
    kernels = enumerate_kernels(PRODUCT, GFX942)
    seen = {(view(one)["tile_m"], view(one)["pipeline"]) for one in kernels}
    assert seen == {(tile, pipeline) for tile in (64, 128, 256) for pipeline in ("compv3", "mem")}
    assert {(view(one)["wave_m"], view(one)["dtype"], view(one)["variant"]) for one in kernels} == {
        (2, "fp16", "standard")
    }


CK_CI: dict[str, dict[str, list[Any]]] = {"data_type": {"values": ["fp16"]}, "pipeline": {"values": ["qr_async"]}}
CK_CI |= {"mask": {"values": ["no", "top_left"]}, "bias": {"values": ["no"]}, "mode": {"values": ["batch"]}}
CK_CI |= {name: {"values": [False]} for name in ("lse", "dropout", "logits", "sink")}
CK_GEMM: dict[str, Any] = {
    "problem": {f"layout_{one}": {"values": [word]} for one, word in zip("abc", "rcr", strict=True)}
    | {f"datatype_{one}": {"values": ["fp16"]} for one in "abc"},
    "tile_config": PRODUCT["tile_config"],
    "trait_config": PRODUCT["trait_config"],
    "k_block_per_cu": 1,
}


def test_configurations_of_ck_tile_are_read_as_they_are() -> None:
    kernels = enumerate_kernels({"variant": "fwd", "trait_config": CK_CI}, GFX942)
    seen = [view(one) for one in kernels]
    assert {one["mask"] for one in seen} == {"none", "generic"}  # generic masks are causal ones too
    ours = {"family": "fwd", "dtype": "fp16", "pipeline": "qr_async", "bias": "none", "group": False}
    ours |= dict.fromkeys(("lse", "dropout", "logits_soft_cap", "sink"), False)
    assert all({name: one[name] for name in ours} == ours for one in seen)
    for word in ("splitkv", "pagedkv", "appendkv"):
        assert f"fwd_{word}" in variant(word).axes["family"]


def test_a_command_line_states_what_configurations_of_gemm_leave_out() -> None:
    kernels = enumerate_kernels(with_options(CK_GEMM, variant="gemm_universal"), GFX942)
    assert kernels == enumerate_kernels(PRODUCT, GFX942)
    bare = {**CK_GEMM, "problem": {}}
    assert kernels == enumerate_kernels(with_options(bare, variant="standard", dtype="fp16", layout="rcr"), GFX942)
    other = enumerate_kernels({**PRODUCT, "k_block_per_cu": 2}, GFX942)
    assert {view(one)["k_block_per_cu"] for one in other} == {2} != {view(one)["k_block_per_cu"] for one in kernels}
    with pytest.raises(SpecError, match=r"--layout is 'rrr', but problem\.layout is 'rcr'"):
        with_options(PRODUCT, layout="rrr")
    with pytest.raises(SpecError, match="--variant is 'fwd', but the configuration's is 'forward'"):
        with_options(FORWARD, variant="fwd")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "is an object with variant and trait_config"),
        ({"trait_config": {}}, "states its variant"),
        ({"variant": "forwards"}, "did you mean 'forward'"),
        ({**FORWARD, "op": "gemm"}, "variant 'forward' is one of convolution"),
        ({**FORWARD, "trait_config": {"dtyp": ["bf16"]}}, "unknown field 'dtyp'"),
        ({**FORWARD, "trait_config": {"pipeline": ["tma"]}}, r"no kernel has pipeline in \['tma'\]"),
        ({**FORWARD, "trait_config": {"pipeline": ["compv3", "compv33"]}}, r"'compv33' \(did you mean 'compv3'\?\)"),
        ({**PRODUCT, "permute_n": True}, "no kernel permutes N"),
        ({**FORWARD, "trait_config": {"spatial_dims": [True]}}, r"no kernel has spatial_dims in \[True\]"),
        ({**FORWARD, "trait_config": {"pipeline": {"values": []}}}, 'write \\[…\\], {"values"'),
        ({**FORWARD, "tiles": {}}, "unknown section 'tiles'"),
        (
            {**FORWARD, "trait_config": {"pipeline": ["compv3"], "scheduler": ["interwave"]}},
            "leaves no kernel of forward",
        ),
    ],
)
def test_a_wrong_configuration_says_what_is_allowed(config: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        enumerate_kernels(config, GFX942)


def test_every_variant_is_one_of_its_operation() -> None:
    for word, one in VARIANTS.items():
        known, renamed = operation(one.operation.name).attributes, one.operation.words.renamed
        assert set(one.axes) <= set(known), word
        assert set(renamed.values()) <= set(known) and not set(renamed) & set(known)


@pytest.mark.parametrize("word", ["standard", "convolution", "fmha_bwd"])
def test_every_operation_has_kernels(word: str) -> None:
    assert enumerate_kernels({"variant": word, "trait_config": {"dtype": ["fp16"]}}, GFX942)
