from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright import arch as archs
from kernelwright.codegen.operations.gemm.complete import complete
from kernelwright.codegen.operations.gemm.constraints.common import RULES
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.testing.strategies import specs
from kernelwright.codegen.violations import Violation

GOOD = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
    "pipeline": "compv3",
}


def broken(arch: str = "gfx942", **changes: Any) -> list[Violation]:
    model = archs.load(arch)
    spec = GemmSpec.model_validate(complete({**GOOD, **changes}, model))
    return [violation for rule in RULES for violation in rule.check(spec, model)]


def test_a_good_kernel_breaks_nothing() -> None:
    assert broken() == []


@pytest.mark.parametrize(
    ("changes", "rule", "field", "nearest"),
    [
        ({"dtype_acc": "fp16"}, "gemm.dtypes", "dtype_a, dtype_b, dtype_acc", "fp16_fp16_fp32"),
        ({"dtype_c": "bf16"}, "gemm.output_dtype", "dtype_c", "fp16"),
        ({"tile": [130, 128, 32]}, "gemm.tile_limits", "tile.m", "128"),
        ({"tile": [1024, 128, 32]}, "gemm.tile_limits", "tile.m", "512"),
        ({"wave": [4, 4, 1]}, "gemm.wave_set", "wave", "2x2x1"),
        ({"warp_tile": [32, 32, 32]}, "gemm.warp_tile_set", "warp_tile", "32x32x16"),
        ({"cluster": [2, 1, 1]}, "gemm.cluster", "cluster", "1x1x1"),
        ({"tile": [96, 128, 32]}, "gemm.divisibility", "tile.m", "64"),
        ({"tile": [112, 128, 32]}, "gemm.divisibility", "tile.m", "128"),
        ({"pipeline": "tma", "epilogue": "default", "scheduler": "default"}, "gemm.pipeline", "pipeline", "mem"),
        ({"scheduler": "interwave"}, "gemm.traits", "scheduler", "intrawave"),
        ({"epilogue": "tma"}, "gemm.traits", "epilogue", "cshuffle"),
        ({"preshuffle": True}, "gemm.traits", "preshuffle", "False"),
        ({"num_wave_groups": 2}, "gemm.traits", "num_wave_groups", "1"),
        ({"tile": [256, 256, 128]}, "gemm.lds_budget", "tile", "tile.k = 64"),
        ({"tile": [256, 256, 64], "pipeline": "compv4"}, "gemm.lds_budget", "tile", "tile.k = 32"),
    ],
)
def test_each_rule_names_field_and_nearest_choice(changes: dict[str, Any], rule: str, field: str, nearest: str) -> None:
    violations = [violation for violation in broken(**changes) if violation.rule == rule]
    assert [(violation.field, violation.nearest) for violation in violations] == [(field, nearest)]
    assert violations[0].allowed and violations[0].message


def test_all_reasons_are_returned() -> None:
    rules = {violation.rule for violation in broken(wave=[4, 4, 1], warp_tile=[32, 32, 32], scheduler="interwave")}
    assert {"gemm.wave_set", "gemm.warp_tile_set", "gemm.traits"} <= rules


def test_lds_budget_counts_bytes_not_elements() -> None:
    assert broken(tile=[256, 128, 64]) == []
    assert [v.rule for v in broken(dtype="fp32", warp_tile=[16, 16, 16], tile=[256, 128, 64])] == ["gemm.lds_budget"]


def test_preshuffle_has_warp_tiles_of_its_own() -> None:
    ready: dict[str, Any] = {"pipeline": "preshufflev2", "tile": [128, 128, 64], "wave": [1, 4, 1]}
    assert broken(**ready, warp_tile=[16, 16, 32]) == []
    assert [v.field for v in broken(**{**ready, "wave": [1, 2, 1]}, warp_tile=[4, 64, 16])] == ["warp_tile"]
    fp32 = broken(**ready, dtype="fp32", warp_tile=[16, 16, 16])
    assert ("preshuffle", "False") in [(v.field, v.nearest) for v in fp32]


def test_rdna_has_no_32_wide_warp_tile() -> None:
    violations = broken("gfx1201", tile=[128, 128, 32], wave=[4, 2, 1])
    assert [(v.rule, v.nearest) for v in violations] == [("gemm.warp_tile_set", "16x16x16")]


def test_ids_are_unique_and_documented() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids)) and all(rule.id.startswith("gemm.") and len(rule.reason) > 20 for rule in RULES)


@settings(max_examples=100, deadline=None)
@given(specs(), st.sampled_from(archs.names()))
def test_rules_never_raise_and_report_under_their_ids(spec: GemmSpec, name: str) -> None:
    ids = {rule.id for rule in RULES}
    violations = [violation for rule in RULES for violation in rule.check(spec, archs.load(name))]
    assert {violation.rule for violation in violations} <= ids
    assert all(violation.nearest for violation in violations)
