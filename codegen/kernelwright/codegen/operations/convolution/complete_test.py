from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.codegen.operations.convolution.testing.strategies import LEGAL
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.filters import apply_filter
from kernelwright.codegen.selecting.specs import parse_kernel, parse_spec
from kernelwright.codegen.violations import SpecError

GFX942 = archs.load("gfx942")


def parsed(raw: dict[str, Any]) -> GroupedConvSpec:
    spec = parse_spec(raw, GFX942)
    assert isinstance(spec, GroupedConvSpec)
    return spec


def test_defaults_follow_from_pipeline_and_dtype() -> None:
    spec = parsed(LEGAL)
    assert (spec.epilogue, spec.scheduler, spec.double_smem_buffer) == ("cshuffle", "intrawave", False)
    assert (spec.vector.a, spec.vector.b, spec.vector.c) == (8, 8, 8)
    assert parsed({**LEGAL, "dtype": "fp32"}).vector.c == 4
    assert parsed({**LEGAL, "pipeline": "compv4"}).double_smem_buffer
    assert spec.spatial_dims == 2 and parsed({**LEGAL, "layout": "ndhwgc"}).spatial_dims == 3


def test_spellings_are_one_kernel() -> None:
    flat = {key: value for key, value in LEGAL.items() if key != "tile"}
    spelled: list[dict[str, Any]] = [LEGAL, {**LEGAL, "vector": [8, 8, 8]}, {**LEGAL, "vector_a": 8}]
    spelled += [{**flat, "tile_m": 128, "tile_n": 128, "tile_k": 32}, parsed(LEGAL).model_dump(mode="json")]
    assert len({parse_kernel(raw, GFX942).identity for raw in spelled}) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"direction": "backwards"}, r"direction = 'backwards' is unknown .*allowed: forward, backward_data"),
        ({"vectors": [1, 1, 1]}, r"unknown field 'vectors' \(did you mean 'vector'\?\)"),
        ({"vector": [1, 1]}, r"vector = \[1, 1\] is neither \[a, b, c\] nor {\"a\", \"b\", \"c\"}"),
        ({"stride": [1, 1], "stride_h": 2}, "both 'stride' and 'stride_h' are given"),
        ({"images": 0}, "images = 0"),
        ({"pipeline": "direct", "scheduler": "none"}, "scheduler = 'none' is unknown"),
    ],
)
def test_what_is_no_spec_is_refused_readably(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_spec({**LEGAL, **fields}, GFX942)


def test_missing_fields_are_named() -> None:
    with pytest.raises(SpecError, match="missing field 'layout', 'tile', 'wave', 'warp_tile', 'pipeline'"):
        parse_spec({"op": "convolution", "direction": "forward", "dtype": "fp16"}, GFX942)


def test_configurations_expand_to_what_is_legal() -> None:
    config = {
        "op": "convolution",
        "problem": {"dtype": "bf16", "layout": "ndhwgc", "pipeline": "compv3", "wave": [2, 2, 1]},
        "tile_config": {"tile": [[128, 128, 32], [96, 128, 32]], "warp_tile": [[32, 32, 16]]},
        "trait_config": {"direction": {"values": ["forward", "backward_data"]}},
    }
    expansion = expand_config(config, GFX942)
    assert len(expansion.kernels) == 2 and expansion.dropped["convolution.divisibility"] == 2
    kept = apply_filter("c.direction == 'backward_data' and c.spatial_dims == 3", list(expansion.kernels))
    assert len(kept) == 1
