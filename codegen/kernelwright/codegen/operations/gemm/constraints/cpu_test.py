from __future__ import annotations

from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.operations.gemm.constraints.cpu import RULES
from kernelwright.codegen.operations.gemm.spec import (
    Activation,
    Epilogue,
    Extent,
    GemmSpec,
    Padding,
    Pipeline,
    Scheduler,
    StreamK,
)

GOOD: dict[str, Any] = {
    "op": "gemm",
    "dtype_a": DType.BF16,
    "dtype_b": DType.BF16,
    "dtype_c": DType.BF16,
    "dtype_acc": DType.FP32,
    "layout": Layout.RCR,
    "tile": Extent(m=168, n=4096, k=1024),
    "wave": Extent(m=1, n=1, k=1),
    "warp_tile": Extent(m=14, n=32, k=2),
    "pipeline": Pipeline.PACKED,
    "epilogue": Epilogue.DEFAULT,
    "scheduler": Scheduler.DEFAULT,
}


def broken(arch: str = "x86_64_v4", **changes: Any) -> list[tuple[str, str, str]]:
    spec = GemmSpec(**{**GOOD, **changes})
    violations = [violation for rule in RULES for violation in rule.check(spec, load(arch))]
    return [(violation.rule, violation.field, violation.nearest) for violation in violations]


def test_a_good_kernel_breaks_nothing() -> None:
    assert broken() == []
    assert broken(tile=Extent(m=512, n=512, k=1024), warp_tile=Extent(m=32, n=32, k=32)) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"dtype_c": DType.FP8}, ("cpu.symbols", "dtype_c", "fp32")),
        ({"dtype_acc": DType.INT32}, ("cpu.symbols", "dtype_acc", "fp32")),
        ({"pipeline": Pipeline.COMPV4}, ("cpu.symbols", "pipeline", "packed")),
        ({"epilogue": Epilogue.CSHUFFLE}, ("cpu.symbols", "epilogue", "default")),
        ({"scheduler": Scheduler.PINGPONG}, ("cpu.symbols", "scheduler", "default")),
        ({"dtype_b": DType.FP16}, ("cpu.symbols", "dtype_b", "bf16")),
        ({"warp_tile": Extent(m=14, n=32, k=4)}, ("cpu.depth", "warp_tile.k", "2")),
        ({"warp_tile": Extent(m=14, n=24, k=2)}, ("cpu.vectors", "warp_tile.n", "32")),
        ({"warp_tile": Extent(m=15, n=32, k=2)}, ("cpu.registers", "warp_tile", "14x32x2")),
        ({"tile": Extent(m=1400, n=4096, k=1024)}, ("cpu.caches", "tile.m", "504")),
        ({"tile": Extent(m=168, n=16384, k=1024)}, ("cpu.caches", "tile.n", "8192")),
        (
            {"tile": Extent(m=1024, n=512, k=1024), "warp_tile": Extent(m=32, n=32, k=32)},
            ("cpu.caches", "tile.m", "512"),
        ),
        ({"pad": Padding(n=False)}, ("cpu.padding", "pad.n", "True")),
    ],
)
def test_each_rule_refuses_and_names_the_nearest(changes: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert expected in broken(**changes)


INT8: dict[str, Any] = {
    "dtype_a": DType.INT8,
    "dtype_b": DType.INT8,
    "dtype_c": DType.INT32,
    "dtype_acc": DType.INT32,
    "tile": Extent(m=168, n=4096, k=1024),
    "warp_tile": Extent(m=12, n=32, k=4),
}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"preshuffle": True, "batched": True}, "batched"),
        ({"preshuffle": True, "grouped": True}, "grouped"),
        ({"preshuffle": True, "stream_k": StreamK.TREE}, "stream_k"),
        ({"persistent": True, "stream_k": StreamK.LINEAR}, "stream_k"),
        ({"persistent": True, "split_k": True}, "split_k"),
        ({**INT8, "num_d": 1}, "num_d"),
        ({**INT8, "activation": Activation.RELU}, "activation"),
    ],
)
def test_variants_that_exclude_each_other(changes: dict[str, Any], field: str) -> None:
    assert [item for item in broken(**changes) if item[:2] == ("cpu.variants", field)]


def test_int8_sums_to_int32_and_keeps_registers_for_its_correction() -> None:
    assert broken(**INT8) == []
    assert ("cpu.symbols", "dtype_c", "int32") in broken(**{**INT8, "dtype_c": DType.FP32})
    assert ("cpu.registers", "warp_tile", "13x32x4") in broken(**{**INT8, "warp_tile": Extent(m=14, n=32, k=4)})


def test_avx2_has_16_registers() -> None:
    fp32 = {"dtype_a": DType.FP32, "dtype_b": DType.FP32, "dtype_c": DType.FP32, "tile": Extent(m=6, n=16, k=4)}
    assert broken("x86_64_v3", **fp32, warp_tile=Extent(m=6, n=16, k=1)) == []
    assert broken("x86_64_v3", **fp32, warp_tile=Extent(m=7, n=16, k=1)) == [("cpu.registers", "warp_tile", "6x16x1")]


def test_ids_are_unique_and_reasons_are_given() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.reason for rule in RULES)
