from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.arch import ArchError, load, load_file, model, names, register

DATA = Path(__file__).parent / "data"


def raw(base: str = "gfx942", /, **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DATA / f"{base}.json").read_text())
    return {**data, **changes}


def write(folder: Path, data: object) -> Path:
    path = folder / "arch.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_eight_architectures_ship() -> None:
    assert names() == (
        "gfx1100",
        "gfx1201",
        "gfx90a",
        "gfx942",
        "gfx950",
        "sm_90a",
        "x86_64_v3",
        "x86_64_v4",
    )


@pytest.mark.parametrize("name", names())
def test_every_file_is_whole(name: str) -> None:
    arch = load(name)
    assert arch.name == name and load(name) is arch
    assert {layout for layout in arch.layouts} == {"rcr", "rrr", "crr", "ccr"}
    for key, tiles in arch.warp_tiles.items():
        assert tiles and arch.outputs[key] and len(set(tiles)) == len(tiles)
    for pipeline, limits in arch.pipelines.items():
        budget = arch.lds_budget(pipeline)
        assert budget is None or budget * (2 if limits.double_buffer else 1) <= arch.lds_bytes
    assert {(1, 1, 1)} <= set(arch.clusters)
    assert all(
        any(word in source for word in ("sheet", "page", "GPUOpen", "ROCm", "guide", "ISA", "LLVM", "no fp8"))
        for source in arch.sources
    )


@pytest.mark.parametrize(
    ("name", "dtype", "peak_tflops"),
    [  # the data sheets' dense figures
        ("gfx90a", "fp16", 383.0 / 2),
        ("gfx942", "fp16", 1307.4),
        ("gfx942", "fp8", 2614.9),
        ("gfx950", "bf16", 2516.6),
        ("gfx950", "fp8", 5033.2),
        ("gfx1100", "fp16", 122.8),
        ("gfx1201", "fp16", 194.6),
        ("sm_90a", "bf16", 989.4),
        ("sm_90a", "int8", 1978.9),
    ],
)
def test_the_numbers_give_the_data_sheets_peaks(name: str, dtype: str, peak_tflops: float) -> None:
    arch = load(name)
    peak = arch.flops_per_clock_per_cu[dtype] * arch.compute_units * arch.clock_ghz / 1000
    assert peak == pytest.approx(peak_tflops, rel=0.01)


def test_reference_facts() -> None:
    assert set(load("gfx90a").waves) == {(1, 4, 1), (2, 2, 1), (4, 1, 1)}
    assert len(load("gfx942").waves) == 7 and len(load("gfx950").waves) == 9
    assert set(load("gfx1201").waves) == {(2, 4, 1), (1, 8, 1), (8, 1, 1), (4, 2, 1)}
    assert load("gfx942").lds_budget("compv4") == 32768 and load("gfx950").lds_budget("compv4") == 81920
    assert load("gfx942").warp_tiles["bf8_fp8_fp32"] == ((32, 32, 16),)
    assert (16, 16, 128) in load("gfx950").warp_tile_sets["fp8_bf8_fp32"]
    assert "fp8_fp8_fp32" not in load("gfx90a").warp_tiles and "fp8_fp8_fp32" not in load("gfx1100").warp_tiles
    assert (64, 256, 16) in load("sm_90a").warp_tile_sets["bf16_bf16_fp32"]
    assert load("sm_90a").lds_bytes == 227 * 1024
    assert load("gfx942").epilogues == ("cshuffle", "default")
    assert load("sm_90a").schedulers == ("cooperative", "pingpong")
    assert (64, 4, 16) in load("gfx942").preshuffle_warp_tile_sets["fp16_fp16_fp32"]
    assert (1, 1, 1) in load("sm_90a").cluster_set and (2, 2, 1) in load("gfx942").wave_set


def test_features_are_asked_of_the_device_only_where_needed() -> None:
    v4 = load("x86_64_v4")
    assert v4.features("bf16_bf16_fp32", 2) == ("avx512_bf16",)
    assert v4.features("bf16_bf16_fp32", 1) == () == v4.features("fp32_fp32_fp32", 1)


def test_an_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    with pytest.raises(ArchError, match=r"unknown arch 'gfx943'; known: gfx1100, .*\. Did you mean 'gfx942'\?"):
        load("gfx943")
    with pytest.raises(ArchError, match=r"x86_64_v4\.$"):
        load("zzz")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "is not JSON"),
        ("[]", r"\(file\)"),
        (raw(wave_size=0), "wave_size: "),
        (raw(colour="red"), "colour: Extra inputs"),
        (raw(schema_version=2), "schema_version"),
        (raw(outputs={}), "outputs must have exactly the dtype keys"),
        (raw(preshuffle_warp_tiles={"fp4_fp4_fp32": [[1, 1, 1]]}), "that warp_tiles lacks"),
        (raw(flops_per_clock_per_cu={"fp16": 1}), "must rate exactly these dtypes: bf16"),
        (raw(waves=[[1, 2]]), r"waves: .*is not \[m, n, k\]"),
        (raw(tile={"m": "x", "n": 1, "k": 1}), r"tile\.m: "),
        (raw(sources=[]), "sources"),
    ],
)
def test_a_wrong_file_is_refused_field_by_field(tmp_path: Path, data: object, message: str) -> None:
    with pytest.raises(ArchError, match=message):
        load_file(write(tmp_path, data))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchError, match="cannot read the arch file"):
        load_file(tmp_path / "none.json")


def test_registered_architectures_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_registered", {})
    mine = load_file(write(tmp_path, raw(name="gfx943")))
    register(mine)
    register(mine)
    assert load("gfx943") is mine
    other = load_file(write(tmp_path, raw(name="gfx943", wave_size=32)))
    for taken in (other, load_file(write(tmp_path, raw()))):
        with pytest.raises(ArchError, match="exists already"):
            register(taken)


@pytest.mark.parametrize("name", names())
def test_a_compute_unit_holds_a_workgroup(name: str) -> None:
    arch = load(name)
    assert (arch.compute_unit is None) == (arch.backend == "cpu")
    if arch.compute_unit is not None:
        assert arch.lds_bytes + arch.compute_unit.lds_reserved <= arch.compute_unit.lds_bytes
        assert arch.compute_unit.registers % arch.compute_unit.register_granule == 0
