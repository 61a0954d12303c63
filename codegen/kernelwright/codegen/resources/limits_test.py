from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.arch import load, names
from kernelwright.codegen.packaging.bundle import manifest
from kernelwright.codegen.resources.limits import (
    LIMITS,
    LimitError,
    check_limits,
    exceeded,
    numbers,
    parse_limits,
    read_limit,
    strictest,
)
from kernelwright.codegen.selecting.selection import load_archs, select, select_listed
from kernelwright.codegen.violations import SpecError

# Resources as reports of real kernels gave them.
AMD: dict[str, Any] = {
    **{"vgpr": 145, "sgpr": 33, "agpr": 0, "lds_bytes": 16384, "scratch_bytes": 0, "vgpr_spills": 0, "sgpr_spills": 0},
    **{"wave_size": 64, "block_size": 256, "matrix_instructions": 80, "code_bytes": 6584},
    **{"workgroups_per_cu": 3, "occupancy_percent": 37},
    "counts": {
        "loop": {"conflict_cycles": 32},
        "outside": {"instructions": 1477},
        "valu_per_matrix_cycle": 0.305,
        "lds_per_matrix_cycle": 1.0,
    },
}
NVIDIA = {
    **{"registers": 168, "block_size": 384, "shared_bytes": 230400, "stages": 4, "stack_bytes": 0},
    **{"spill_instructions": 12, "matrix_instructions": 8, "code_bytes": 39424},
    **{"workgroups_per_cu": 1, "occupancy_percent": 18},
}
CPU = {"registers": 32, "matrix_instructions": 825, "code_bytes": 90400, "stack_bytes": 1856}


@pytest.mark.parametrize(
    ("resources", "limits", "words"),
    [
        (AMD, {"max_registers": 128}, "145 vector registers .* allowed: at most 128 .max_registers.; choose"),
        (AMD, {"max_lds_bytes": 16383}, "16384 bytes of LDS"),
        (AMD, {"min_occupancy": 50}, "37 percent .* at least 50 .min_occupancy.; choose a smaller tile"),
        (AMD, {"max_lds_conflicts": 0}, "32 clocks that LDS bank conflicts add .* at most 0 .max_lds_conflicts"),
        (AMD, {"max_valu_per_matrix_cycle": 0.3}, "0.305 clocks of the vector unit .* at most 0.3 .*larger tile"),
        (AMD, {"max_lds_per_matrix_cycle": 0.5}, "1.0 clocks of the LDS, bank conflicts among them"),
        (AMD, {"max_instructions_outside": 1000}, "1477 instructions outside of the main loop"),
        (NVIDIA, {"max_vgpr_spills": 0}, "12 vector registers spilled"),
        (NVIDIA, {"max_lds_bytes": 100_000}, "230400 bytes"),
        (NVIDIA, {"min_workgroups_per_cu": 2}, "1 workgroups"),
        (CPU, {"max_code_bytes": 65536}, "90400 bytes of code"),
        (CPU, {"max_scratch_bytes": 1792}, "1856 bytes of memory .* at most 1792 .max_scratch_bytes.; choose"),
        (CPU, {"min_matrix_instructions": 1000}, "825 matrix instructions"),
    ],
)
def test_a_kernel_beyond_a_limit_is_told_the_numbers(
    resources: dict[str, int], limits: dict[str, int], words: str
) -> None:
    assert not list(exceeded({name: resources_value(resources, name) for name in limits}, resources))
    with pytest.raises(LimitError, match=f"^k: {words}"):
        check_limits([("fine", {}, None), ("k", limits, resources)])


def resources_value(resources: dict[str, Any], name: str) -> Any:
    known = numbers(resources)
    return next(known[key] for key in LIMITS[name].keys if key in known)


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (None, "the kernel has no main loop of matrix instructions"),
        ({"conflict_cycles": None}, "addresses that only a launch knows; remove the limit"),
    ],
)
def test_a_limit_on_what_is_not_known_says_why(loop: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(LimitError, match=f"^k: max_lds_conflicts = 0, but .*{words}"):
        check_limits([("k", {"max_lds_conflicts": 0}, {**AMD, "counts": {"loop": loop}})])


def test_limits_of_command_lines() -> None:
    assert read_limit("max_registers=128") == ("max_registers", 128)
    assert read_limit("max_valu_per_matrix_cycle=0.8") == ("max_valu_per_matrix_cycle", 0.8)
    for text in ("max_registers", "max_registers=", "max_registers=-1", "max_registers=1e3", "max_registers=.5"):
        with pytest.raises(ValueError, match="write a name and a number, such as max_vgpr_spills=0"):
            read_limit(text)


def test_every_number_beyond_its_limit_is_listed() -> None:
    with pytest.raises(LimitError) as caught:
        check_limits([("a", {"max_registers": 1, "max_code_bytes": 1}, AMD), ("b", {"max_registers": 2}, CPU)])
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["a", "a", "b"]


def test_a_limit_without_a_number_fails() -> None:
    (line,) = exceeded({"max_sgpr_spills": 0}, CPU)
    assert "has no sgpr_spills" in line


@pytest.mark.parametrize("arch", names())
def test_every_limit_is_taken_where_reports_have_the_number(arch: str) -> None:
    loaded = load(arch)
    reports = {"ck_tile": numbers(AMD), "cutlass": NVIDIA, "cpu": CPU}[loaded.backend]
    for name, limit in LIMITS.items():
        if any(key in reports for key in limit.keys):
            assert parse_limits({name: 3}, loaded) == {name: 3}
        else:
            with pytest.raises(
                SpecError, match=f"limit '{name}': kernels for {arch} have no such number; allowed: max"
            ):
                parse_limits({name: 3}, loaded)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"max_vgpr_spill": 0}, "unknown limit 'max_vgpr_spill' .did you mean 'max_vgpr_spills'"),
        ({"max_registers": -1}, "max_registers = -1: allowed: whole numbers from 0"),
        ({"max_registers": True}, "whole numbers"),
        ({"max_registers": 8.5}, "max_registers = 8.5: allowed: whole numbers"),
        ({"max_valu_per_matrix_cycle": -0.5}, "= -0.5: allowed: numbers from 0"),
        ({"max_valu_per_matrix_cycle": float("inf")}, "allowed: numbers from 0"),
        ({"max_registers": "8"}, "whole numbers"),
        ([1], "limits must be an object"),
    ],
)
def test_wrong_limits_are_refused(raw: object, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parse_limits(raw, load("gfx942"))


def test_the_strictest_of_several_holds() -> None:
    stated = [{"max_registers": 128, "min_occupancy": 25}, {}, {"max_registers": 96}, {"min_occupancy": 50}]
    assert strictest(stated) == {"max_registers": 96, "min_occupancy": 50}


def test_selections_carry_limits(tmp_path: Path) -> None:
    known = load_archs()
    spec = {
        "op": "gemm",
        "dtype": "bf16",
        "layout": "rcr",
        "tile": [128, 128, 32],
        "wave": [2, 2, 1],
        "warp_tile": [32, 32, 16],
    }
    spec |= {"pipeline": "compv3"}
    listed: list[Any] = [
        {"arch": "gfx942", "spec": spec, "limits": {"max_vgpr_spills": 4}},
        {"arch": "gfx942", "spec": spec, "limits": {"max_vgpr_spills": 0, "max_registers": 256}},
        {"arch": "gfx90a", "spec": spec},
    ]
    by_arch = {item.arch.name: item for item in select_listed(listed, known)}
    (kernel,) = by_arch["gfx942"].kernels
    assert by_arch["gfx942"].limits == {kernel.identity: {"max_registers": 256, "max_vgpr_spills": 0}}
    assert not by_arch["gfx90a"].limits
    listed[0]["limits"] = {"max_spills": 0}
    with pytest.raises(SpecError, match=r"kernels\[0\]: unknown limit 'max_spills'"):
        select_listed(listed, known)

    config = {
        "op": "gemm",
        "problem": {"dtype": "bf16", "layout": "rcr"},
        "tile_config": {
            key: {"values": [value]} for key, value in spec.items() if key in ("tile", "wave", "warp_tile")
        },
        "trait_config": {"pipeline": {"values": ["compv3"]}},
        "limits": {"max_vgpr_spills": 0},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    (item,) = select("config", str(path), ["gfx942"], known, "c.tile_m == 128", {"max_registers": 9})
    assert list(item.limits.values()) == [{"max_registers": 9, "max_vgpr_spills": 0}]
    (item,) = select("specs", spec, ["gfx942"], known)
    assert not item.limits


def test_a_manifest_is_refused_for_kernels_beyond_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.codegen.resources.ck_tile.read_report", lambda data, expects: dict(AMD))
    unit = load("gfx942").compute_unit
    assert unit is not None
    (tmp_path / "k.s").write_text("")
    kernel = {"name": "k", "identity": "0" * 64, "arch": "gfx942", "spec": {}, "features": "", "objects": []}
    kernel |= {"expects": {"device_kernels": 1, "matrix_instructions": True, "helpers": []}}
    library: dict[str, Any] = {
        **{"name": "gemm", "arch": "gfx942", "backend": "ck_tile", "abi_version": 1, "device": "", "toolchains": {}},
        **{"library": "gfx942/libgemm.so", "wave_size": 64, "compute_unit": unit.model_dump()},
        "kernels": [{**kernel, "report": "k.s", "limits": {"min_occupancy": 37}}],
    }
    known = {"gfx942/libgemm.so": "0" * 64}
    made = manifest(library, lambda path: tmp_path / path, known)
    assert made["kernels"][0]["resources"]["occupancy_percent"] == 37 and "limits" not in made["kernels"][0]
    library["kernels"][0]["limits"] = {"min_occupancy": 38}
    with pytest.raises(LimitError, match="k: 37 percent"):
        manifest(library, lambda path: tmp_path / path, known)
