from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import Arch, ArchError
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.attention.arch_section import attention_section, hdim_distance
from kernelwright.codegen.operations.attention.kinds import Family, OperandTypes, Pipeline
from kernelwright.codegen.operations.attention.products import points, product_names

GFX942 = archs.load("gfx942")


def changed(**changes: Any) -> Arch:
    section = {**GFX942.operations["attention"], **changes}
    return GFX942.model_copy(update={"operations": {"attention": section}})


@pytest.mark.parametrize("name", archs.names())
def test_every_architecture_has_a_table(name: str) -> None:
    section = attention_section(archs.load(name))
    for row in section.kernels:
        assert row.family in section.families
        assert all(row.hdim in section.hdim_sets[dtype] for dtype in row.dtypes), row
        assert section.rows(row.family, row.dtypes[0], row.hdim)
    assert section.pipelines_of(Family.FWD_APPENDKV) == (Pipeline.APPENDKV,)


def test_every_product_is_used() -> None:
    used = {
        product
        for name in archs.names()
        for row in attention_section(archs.load(name)).kernels
        for product in row.products
    }
    assert used == set(product_names())
    fields = {frozenset(point.fields) for point in points("fwd_half")}
    assert all({"pipeline", "pad", "group", "lse"} <= names for names in fields)
    padded = points("bwd_dq_dk_dv")[0].fields
    assert (padded["pad"].d, padded["hdim_q_alignment"]) == (False, 0)


def test_data_types_say_what_is_read_and_written() -> None:
    assert (OperandTypes.FP8BF16.inputs, OperandTypes.FP8BF16.output) == (DType.FP8, DType.BF16)
    assert OperandTypes.FP16.inputs is OperandTypes.FP16.output is DType.FP16


def test_pairs_that_hold_the_head_dimensions_are_closer() -> None:
    pairs = [(96, 96), (128, 128), (192, 128)]
    assert min(pairs, key=lambda pair: hdim_distance((100, 100), pair)) == (128, 128)
    assert min(pairs, key=lambda pair: hdim_distance((300, 300), pair)) == (192, 128)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtypes": ["fp16", "fp17"]}, "dtypes"),
        ({"dtypes": ["fp16"]}, "hdims must have exactly the dtypes: fp16"),
        ({"pipelines": {"qrs": ["fwd"]}}, "operations.attention.pipelines.qrs"),
        ({"masks": []}, "operations.attention.masks"),
        ({"kernels": [{"family": "fwd", "dtypes": ["fp16"], "hdim": [64], "products": ["x"]}]}, "kernels.0.hdim"),
        (
            {"kernels": [{"family": "fwd", "dtypes": ["fp16"], "hdim": [64, 64], "products": ["none"]}]},
            "kernels names the product 'none'; known: fwd_half",
        ),
        ({"extra": 1}, "operations.attention.extra"),
    ],
)
def test_malformed_sections_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        attention_section(changed(**changes))


def test_types_without_a_rate_are_refused() -> None:
    arch = GFX942.model_copy(update={"flops_per_clock_per_cu": {"fp16": 1.0, "bf16": 1.0, "fp32": 1.0}})
    with pytest.raises(ArchError, match="flops_per_clock_per_cu must rate these dtypes: bf8, fp8"):
        attention_section(arch)
