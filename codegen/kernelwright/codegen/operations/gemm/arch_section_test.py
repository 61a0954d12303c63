from __future__ import annotations

from typing import Any

import pytest

from kernelwright.arch import Arch, ArchError, load, names
from kernelwright.codegen.operations.gemm.arch_section import GemmSection, gemm_section


def section(name: str) -> GemmSection:
    return gemm_section(load(name))


@pytest.mark.parametrize("name", names())
def test_every_section_is_whole(name: str) -> None:
    arch, entry = load(name), section(name)
    assert gemm_section(arch) is entry
    assert set(entry.layouts) == {"rcr", "rrr", "crr", "ccr"}
    for key, tiles in entry.warp_tiles.items():
        assert tiles and entry.outputs[key] and len(set(tiles)) == len(tiles)
    for pipeline, limits in entry.pipelines.items():
        budget = entry.lds_budget(pipeline)
        assert budget is None or budget * (2 if limits.double_buffer else 1) <= arch.lds_bytes
    assert {(1, 1, 1)} <= set(entry.clusters)
    offered = {dtype for key in entry.warp_tiles for dtype in key.split("_")[:2]}
    assert set(entry.instruction_tiles) == (offered if arch.backend == "ck_tile" else set())
    rates, multiplied = set(arch.flops_per_clock_per_cu), {key.split("_")[0] for key in entry.warp_tiles}
    # Attention on CPUs widens 8-bit operands.
    assert rates - multiplied == ({"fp8"} if arch.backend == "cpu" else set()) and multiplied <= rates


def test_reference_facts() -> None:
    assert set(section("gfx90a").waves) == {(1, 4, 1), (2, 2, 1), (4, 1, 1)}
    assert len(section("gfx942").waves) == 7 and len(section("gfx950").waves) == 9
    assert set(section("gfx1201").waves) == {(2, 4, 1), (1, 8, 1), (8, 1, 1), (4, 2, 1)}
    assert section("gfx942").lds_budget("compv4") == 32768 and section("gfx950").lds_budget("compv4") == 81920
    assert section("gfx942").warp_tiles["bf8_fp8_fp32"] == ((32, 32, 16),)
    assert (16, 16, 128) in section("gfx950").warp_tile_sets["fp8_bf8_fp32"]
    assert "fp8_fp8_fp32" not in section("gfx90a").warp_tiles and "fp8_fp8_fp32" not in section("gfx1100").warp_tiles
    assert (64, 256, 16) in section("sm_90a").warp_tile_sets["bf16_bf16_fp32"]
    assert section("gfx942").epilogues == ("cshuffle", "default")
    assert section("sm_90a").schedulers == ("cooperative", "pingpong", "default")
    assert (64, 4, 16) in section("gfx942").preshuffle_warp_tile_sets["fp16_fp16_fp32"]
    assert (1, 1, 1) in section("sm_90a").cluster_set and (2, 2, 1) in section("gfx942").wave_set


def test_features_are_asked_of_the_device_only_where_needed() -> None:
    v4 = section("x86_64_v4")
    assert v4.features("bf16_bf16_fp32", 2) == ("avx512_bf16",)
    assert v4.features("bf16_bf16_fp32", 1) == () == v4.features("fp32_fp32_fp32", 1)


def changed(**changes: Any) -> Arch:
    arch = load("gfx942")
    return arch.model_copy(update={"operations": {"gemm": {**arch.operations["gemm"], **changes}}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": "red"}, r"operations\.gemm\.colour: Extra inputs"),
        ({"outputs": {}}, "outputs must have exactly the dtype keys"),
        ({"preshuffle_warp_tiles": {"fp4_fp4_fp32": [[1, 1, 1]]}}, "that warp_tiles lacks"),
        ({"waves": [[1, 2]]}, r"operations\.gemm\.waves: .*is not \[m, n, k\]"),
        ({"tile": {"m": "x", "n": 1, "k": 1}}, r"operations\.gemm\.tile\.m: "),
        ({"feature_needs": [{"feature": "x", "dtypes": "a", "warp_tile_k": 1}]}, "'x', which cpu.features lacks"),
    ],
)
def test_a_wrong_section_is_refused_field_by_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchError, match=message):
        gemm_section(changed(**changes))


def test_every_dtype_has_a_rate() -> None:
    arch = load("gfx942").model_copy(update={"flops_per_clock_per_cu": {"fp16": 1}})
    with pytest.raises(ArchError, match="flops_per_clock_per_cu must rate these dtypes: bf16"):
        gemm_section(arch)
