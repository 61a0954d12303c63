from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from kernelwright.arch import load
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.gemm import cutlass as symbols
from kernelwright.codegen.operations.gemm.constraints.cutlass import RULES, shared_memory
from kernelwright.codegen.operations.gemm.spec import Activation, Epilogue, GemmSpec, Pipeline, Scheduler
from kernelwright.codegen.operations.gemm.testing.strategies import specs
from kernelwright.codegen.selecting.specs import parse_spec

ARCH = load("sm_90a")
GOOD: dict[str, Any] = {
    "op": "gemm",
    "dtype": "bf16",
    "layout": "rcr",
    "tile": [128, 256, 64],
    "wave": [2, 1, 1],
    "warp_tile": [64, 256, 16],
    "scheduler": "cooperative",
    "cluster": [2, 1, 1],
}
FP8: dict[str, Any] = {**GOOD, "dtype": "fp8", "tile": [128, 256, 128], "warp_tile": [64, 256, 32]}
PINGPONG: dict[str, Any] = {**GOOD, "scheduler": "pingpong", "wave": [1, 1, 1]}
WIDE: dict[str, Any] = {**GOOD, "tile": [256, 192, 64], "warp_tile": [64, 192, 16]}
SMALL: dict[str, Any] = {**PINGPONG, "tile": [64, 128, 64], "warp_tile": [64, 128, 16]}
SWAPPED: dict[str, Any] = {**GOOD, "tile": [16, 128, 128], "wave": [1, 2, 1], "warp_tile": [16, 64, 16]}
INT8_SWAPPED: dict[str, Any] = {**SWAPPED, "dtype": "int8", "warp_tile": [16, 64, 32]}


def broken(raw: dict[str, Any]) -> dict[str, str]:
    spec = parse_spec(raw, ARCH)
    return {v.rule: v.nearest for rule in RULES for v in rule.check(spec, ARCH)}


def test_good_kernels_pass() -> None:
    assert broken(GOOD) == {}
    assert broken(FP8) == {}
    assert broken({**PINGPONG, "tile": [64, 128, 64], "warp_tile": [64, 128, 16]}) == {}
    assert broken(SWAPPED) == {}
    assert broken({**INT8_SWAPPED, "layout": "rrr"}) == {}
    for variant in ({"batched": True}, {"split_k": True}, {"stream_k": "linear"}, {"num_d": 1, "activation": "gelu"}):
        assert broken({**GOOD, **variant}) == {}


@pytest.mark.parametrize(
    ("raw", "rule", "nearest"),
    [
        ({**FP8, "layout": "rrr"}, "cutlass.layout_8bit", "rcr"),
        ({**FP8, "layout": "crr"}, "cutlass.layout_8bit", "rcr"),
        ({**FP8, "dtype": "int8", "layout": "rrr"}, "cutlass.layout_8bit", "rcr"),
        ({**GOOD, "tile": [64, 256, 64]}, "cutlass.tile_rows", "128"),
        ({**PINGPONG, "tile": [96, 128, 64], "warp_tile": [64, 128, 16]}, "cutlass.tile_rows", "128"),
        ({**GOOD, "tile": [128, 40, 64], "warp_tile": [64, 40, 16]}, "cutlass.tile_columns", "32"),
        ({**GOOD, "wave": [1, 1, 1]}, "cutlass.wave", "2x1x1"),
        ({**PINGPONG, "tile": [64, 256, 64], "wave": [2, 1, 1]}, "cutlass.wave", "1x1x1"),
        ({**GOOD, "warp_tile": [64, 128, 16]}, "cutlass.warp_tile", "64x256x16"),
        ({**FP8, "warp_tile": [64, 256, 16]}, "cutlass.warp_tile", "64x256x32"),
        ({**PINGPONG, "tile": [128, 256, 64]}, "cutlass.accumulators", "tile.n = 192"),
        ({**GOOD, "tile": [128, 256, 128], "dtype_c": "fp32"}, "cutlass.shared_memory", "tile.k = 96"),
        ({**SWAPPED, "tile": [16, 64, 128]}, "cutlass.tile_rows", "128"),
        ({**SWAPPED, "tile": [24, 128, 128], "warp_tile": [24, 64, 16]}, "cutlass.tile_columns", "32"),
        ({**SWAPPED, "wave": [2, 1, 1]}, "cutlass.wave", "1x2x1"),
        ({**INT8_SWAPPED, "layout": "ccr"}, "cutlass.layout_8bit", "rcr"),
        ({**INT8_SWAPPED, "layout": "crr"}, "cutlass.layout_8bit", "rcr"),
        (
            {**GOOD, "tile": [256, 192, 64], "warp_tile": [64, 192, 16], "num_d": 1},
            "cutlass.accumulators",
            "tile.n = 128",
        ),
        ({**GOOD, "num_d": 4}, "cutlass.shared_memory", "tile.k = 32"),
        ({**GOOD, "stream_k": "tree"}, "cutlass.variants", "linear"),
        ({**GOOD, "preshuffle": True}, "cutlass.variants", "False"),
        ({**FP8, "layout": "ccr", "grouped": True}, "cutlass.variants", "rcr"),
        ({**SMALL, "split_k": True}, "cutlass.variants", "cooperative"),
        ({**FP8, "dtype": "int8", "activation": "silu"}, "cutlass.variants", "none"),
        ({**GOOD, "pad": {"m": False}}, "cutlass.padding", "m=True n=True k=True"),
        ({**GOOD, "pipeline": "mem", "epilogue": "tma"}, "cutlass.schedule", ""),
        ({**GOOD, "dtype_a": "fp32", "dtype_b": "fp32", "dtype_acc": "fp32", "dtype_c": "fp32"}, "cutlass.dtype", ""),
    ],
)
def test_each_rule_refuses_and_proposes(raw: dict[str, Any], rule: str, nearest: str) -> None:
    if "dtype_a" in raw:
        raw = {key: value for key, value in raw.items() if key != "dtype"}
    by_rule = broken(raw)
    assert by_rule.get(rule) == nearest
    assert set(by_rule) <= {rule, "cutlass.warp_tile"} or rule in ("cutlass.schedule", "cutlass.dtype")


def test_tf32_is_named_as_the_reason_against_fp32() -> None:
    spec = parse_spec(GOOD, ARCH).model_copy(update={"dtype_a": DType.FP32})
    messages = [v.message for rule in RULES for v in rule.check(spec, ARCH) if v.field == "dtype_a"]
    assert any("tf32" in message for message in messages)


@given(specs())
@settings(max_examples=100, deadline=None)
def test_rules_never_raise_and_leave_only_symbols_that_exist(spec: GemmSpec) -> None:
    violations = [v for rule in RULES for v in rule.check(spec, ARCH)]
    if not violations:
        assert spec.dtype_a in symbols.ELEMENTS and spec.dtype_c in symbols.OUTPUTS
        assert spec.scheduler in symbols.PIPELINES[spec.pipeline][1]


@pytest.mark.parametrize(
    ("raw", "stages"),
    [  # as CUTLASS 4.2 counted them when these kernels were compiled (section .kernelwright.resources)
        (GOOD, 4),
        (FP8, 4),
        ({**PINGPONG, "tile": [64, 128, 64], "warp_tile": [64, 128, 16]}, 8),
        ({**FP8, "dtype": "int8"}, 3),
    ],
)
def test_stages_are_cutlasss(raw: dict[str, Any], stages: int) -> None:
    spec = parse_spec(raw, ARCH)
    assert isinstance(spec, GemmSpec) and shared_memory(spec, ARCH.lds_bytes)[1] == stages


def test_every_word_is_mapped_or_refused() -> None:
    good = parse_spec(GOOD, ARCH)
    tables: list[tuple[str, Any, Any]] = [
        ("dtype_a", DType, symbols.ELEMENTS),
        ("dtype_b", DType, symbols.ELEMENTS),
        ("dtype_c", DType, symbols.OUTPUTS),
        ("dtype_acc", DType, symbols.ACCUMULATORS),
        ("pipeline", Pipeline, symbols.PIPELINES),
        ("epilogue", Epilogue, {symbols.PIPELINES[Pipeline.TMA][0]}),
        ("scheduler", Scheduler, symbols.PIPELINES[Pipeline.TMA][1]),
    ]
    for field, members, table in tables:
        for member in members:
            spec = good.model_copy(update={field: member})
            refused = any(v.field == field for rule in RULES for v in rule.check(spec, ARCH))
            assert refused == (member not in table), (field, member)


def test_gpu_test_kernels_are_legal() -> None:
    path = Path(__file__).parents[6] / "tests" / "gpu" / "kernels.json"
    if not path.exists():
        pytest.skip("not in a checkout")
    for raw in json.loads(path.read_text()):
        assert broken(raw) == {}


COPIED: dict[str, Any] = {
    "op": "gemm", "dtype": "bf16", "layout": "crr", "tile": [128, 128, 64], "wave": [2, 4, 1],
    "warp_tile": [16, 8, 16], "pipeline": "cp_async", "activation": "any", "batched": True,
}  # fmt: skip


def test_the_kernel_whose_threads_copy_has_one_form() -> None:
    def refused(**fields: object) -> set[str]:
        spec = parse_spec({**COPIED, **fields}, ARCH)
        assert isinstance(spec, GemmSpec)
        return {v.field for rule in RULES for v in rule.check(spec, ARCH)}

    assert refused() == refused(dtype_c="fp32") == refused(tile=[64, 64, 128]) == set()
    assert refused(activation="relu", batched=False) == {"activation", "batched"}
    assert refused(tile=[96, 128, 32]) == {"tile.m", "tile.k"}
    assert refused(tile=[256, 128, 64]) == {"tile"}
    assert refused(wave=[1, 2, 1], warp_tile=[64, 64, 16]) == {"wave", "warp_tile"}
    assert refused(split_k=True, cluster=[2, 1, 1]) == {"split_k", "cluster"}


def test_a_copying_kernel_is_taken_by_name_alone() -> None:
    fields = {name: value for name, value in GOOD.items() if name != "pipeline"}
    spec = parse_spec(fields, ARCH)
    assert isinstance(spec, GemmSpec) and spec.pipeline is Pipeline.TMA


def test_any_epilogue_is_of_fp32() -> None:
    spec = parse_spec({**FP8, "dtype": "int8"}, ARCH)
    assert isinstance(spec, GemmSpec)
    chosen = spec.model_copy(update={"activation": Activation.ANY})
    assert [v.field for rule in RULES for v in rule.check(chosen, ARCH)] == ["activation"]
