from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernelwright.arch import ArchError, load, load_file, model, names, register

DATA = Path(__file__).parents[1] / "files/archs"


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
    assert arch.device and arch.description.endswith(".") and (arch.cpu is None) == (arch.backend != "cpu")
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
    assert load("sm_90a").lds_bytes == 227 * 1024
    assert {name for name in names() if load(name).fp8_format == "fnuz"} == {"gfx942"}
    assert {name for name in names() if load(name).lds_transposing_loads} == {"gfx950"}
    v4 = load("x86_64_v4").cpu
    assert v4 and (v4.level, v4.vector_registers, v4.vector_lanes) == (4, 32, 16)
    amx = {name: name for name in ("amx_tile", "amx_bf16", "amx_int8")}
    assert v4.features == {"avx512_bf16": "avx512bf16", "avx512_vnni": "avx512vnni", **amx}


class _Section(BaseModel):
    value: int


def test_a_section_is_read_once_and_by_its_operation() -> None:
    arch = load("gfx942").model_copy(update={"operations": {"made_up": {"value": 3}, "wrong": {"value": "x"}}})
    assert arch.section("made_up", _Section).value == 3
    assert arch.section("made_up", _Section) is arch.section("made_up", _Section)
    with pytest.raises(ArchError, match=r"'gfx942' is wrong:\n  operations\.wrong\.value: "):
        arch.section("wrong", _Section)
    with pytest.raises(ArchError, match=r"gfx942 has no section operations\.gemm; choose another arch, or add"):
        arch.section("gemm", _Section)


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
        (raw(schema_version=1), r"has schema_version 1; write 2, and move layouts, .* into operations\.gemm"),
        (raw(schema_version=3), "schema_version"),
        (raw(fp8_format="e4m3"), "fp8_format: "),
        (raw(operations={}), "operations: "),
        (raw(sources=[]), "sources"),
        *((raw(**{key: 'x" ; int'}), f"{key}: ") for key in ("name", "backend", "family", "target")),
        *((raw(**{key: "a\nb"}), f"{key}: ") for key in ("device", "description")),
        (raw(clock_ghz=1e300), "clock_ghz: "),
        (raw(lds_bytes=2**62), "lds_bytes: "),
        (raw(flops_per_clock_per_cu={"fp32] = 1, [0": 1}), "flops_per_clock_per_cu"),
        (
            raw(cpu={**raw("x86_64_v3")["cpu"], "features": {"a": "-load=x"}}),
            "cpu.features",
        ),
        ('{"name": NaN}', "NaN is no number of JSON"),
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
