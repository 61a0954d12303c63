from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwright import codegen, files
from kernelwright.codegen.resources.report import ReportError, describe, main, text

AMD = {
    **{"vgpr": 264, "sgpr": 30, "agpr": 8, "lds_bytes": 16384, "scratch_bytes": 40, "vgpr_spills": 3, "sgpr_spills": 2},
    **{"wave_size": 64, "block_size": 256, "kernarg_bytes": 56, "matrix_instructions": 640, "code_bytes": 6584},
    **{"workgroups_per_cu": 1, "occupancy_percent": 12},
}
NVIDIA = {
    **{"registers": 168, "block_size": 384, "shared_bytes": 230400, "stages": 4, "stack_bytes": 0},
    **{"spill_instructions": 0, "matrix_instructions": 8, "code_bytes": 39424},
}


def library(folder: Path, arch: str, *resources: object, costs: object = None) -> Path:
    kernels = [
        {"name": f"k{number}", "identity": f"{number:064}", "arch": arch, "spec": {}, "resources": usage}
        for number, usage in enumerate(resources)
    ]
    (folder / arch).mkdir(parents=True)
    path = folder / arch / "manifest.json"
    path.write_text(json.dumps({"schema_version": 1, "name": "gemm", "arch": arch, "kernels": kernels}))
    if costs is not None:
        (folder / arch / "costs.json").write_text(json.dumps(costs))
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_numbers_of_every_backend_have_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"kernels": {"k0": {"cpu_s": 14.25, "peak_mb": 541}}}
    library(tmp_path, "gfx90a", AMD, None, costs=costs)
    library(tmp_path, "sm_90a", NVIDIA)
    document: Any = json.loads(printed(capsys, str(tmp_path), "--json"))
    amd, nvidia = document["libraries"]
    assert amd["kernels"][0] == {
        **{
            "name": "k0",
            "short": "k0",
            "identity": "0" * 64,
            "registers": 264,
            "agpr": 8,
            "sgpr": 30,
            "lds_bytes": 16384,
        },
        **{"spills": 5, "scratch_bytes": 40, "workgroups_per_cu": 1, "occupancy_percent": 12},
        **{"matrix_instructions": 640, "code_bytes": 6584, "compile_s": 14.25},
    }
    assert set(amd["kernels"][1].values()) == {"k1", f"{1:064}", None}
    row = nvidia["kernels"][0]
    assert (row["registers"], row["lds_bytes"], row["spills"], row["agpr"]) == (168, 230400, 0, None)


def test_the_table_lines_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = library(tmp_path, "gfx90a", AMD, None, costs={"kernels": {"k0": {"cpu_s": 14.25, "peak_mb": 541}}})
    shown = printed(capsys, str(path.with_name("libgemm.so")))
    assert shown.splitlines() == [
        f"gemm for gfx90a: 2 kernels ({path.parent})",
        "regs  agpr  sgpr  LDS B  spills  scratch B  wg/CU  occ. %  matrix  code B  compile s  kernel",
        " 264     8    30  16384       5         40      1      12     640    6584       14.2  k0",
        "   -     -     -      -       -          -      -       -       -       -          -  k1",
    ]


def test_the_table_has_short_names() -> None:
    spec = {"op": "gemm", "dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "bf16", "layout": "rcr"}
    tiles = [{"m": 128, "n": 128, "k": 32}, {"m": 128, "n": 128, "k": 32}, {"m": 64, "n": 64, "k": 32}, 3]
    kernels = [
        {"name": f"gemm_{number}", "identity": f"{number}" * 64, "arch": "gfx942", "spec": {**spec, "tile": tile}}
        for number, tile in enumerate(tiles)
    ]
    described = describe({"name": "gemm", "arch": "gfx942", "kernels": kernels})
    assert [row["name"] for row in described["kernels"]] == ["gemm_0", "gemm_1", "gemm_2", "gemm_3"]
    assert text([described]).splitlines()[2:] == [
        "bf16 rcr 128x128x32 00000000",  # two kernels share the description
        "bf16 rcr 128x128x32 11111111",
        "bf16 rcr 64x64x32",
        "gemm_3",
    ]


def test_what_is_no_library_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text("[")
    for path, words in ((tmp_path, "cannot be read"), (tmp_path / "none" / "no.so", "no.so: ")):
        assert main([str(path)]) == 2
        assert words in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 2
    assert "holds no manifest.json; name the folder of a library" in capsys.readouterr().err
    for raw in ({}, {"name": "a", "arch": "b", "kernels": [{}]}, {"name": "a", "arch": "b", "kernels": 3}):
        with pytest.raises(ReportError, match="is no manifest"):
            describe(raw)
    assert text([describe({"name": "a", "arch": "b", "kernels": []})]) == "a for b: 0 kernels\nkernel"


def test_nothing_else_needs_to_be_installed(tmp_path: Path) -> None:
    library(tmp_path, "gfx90a", AMD)
    roots = [str(Path(str(module.__file__)).parents[2]) for module in (files, codegen)]
    code = "import sys; from kernelwright.codegen.resources.report import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path[:0] = {roots!r}; {code}",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "k0" in done.stdout, done.stderr
