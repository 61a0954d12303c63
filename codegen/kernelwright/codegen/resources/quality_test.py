"""Reports on libraries that manifests describe: tables, JSON, pages, comparisons, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.resources import compare, quality
from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.codegen.resources.testing.loop import LOOP
from kernelwright.files.counts.instruction_set import instruction_set

IDENTITY = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
Shown = Callable[..., tuple[int, str, str]]


def amd(shift: int = 4, **fields: Any) -> dict[str, Any]:
    text = LOOP.format(shift=shift, rest="s_nop 0")
    counts = read_counts(text, ["k_gemm"], instruction_set("gfx942"), 256, 4)
    used = {"vgpr": 64, "sgpr": 32, "lds_bytes": 32768, "block_size": 256, "wave_size": 64, "vgpr_spills": 1}
    fits = {"sgpr_spills": 2, "workgroups_per_cu": 2, "occupancy_percent": 25}
    return {**used, **fits, "scratch_bytes": 0, "matrix_instructions": 1, "counts": counts, **fields}


def library(folder: Path, arch: str, **resources: dict[str, Any]) -> Path:
    """A library whose kernels have these resources by name; the first one has ``IDENTITY``."""
    folder.mkdir(parents=True, exist_ok=True)
    kernels = [
        {"name": name, "identity": identity, "resources": used}
        for (name, used), identity in zip(resources.items(), (IDENTITY, OTHER), strict=False)
    ]
    (folder / "manifest.json").write_text(json.dumps({"name": "gemm", "arch": arch, "kernels": kernels}))
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Shown:
    def shown(main: Callable[[list[str]], int], *arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return shown


def test_a_row_has_what_bounds_the_kernel(tmp_path: Path, run: Shown) -> None:
    code, out, _ = run(quality.main, library(tmp_path, "gfx942", gemm_one=amd()), "--json")
    document = json.loads(out)
    (row,) = document["libraries"][0]["kernels"]
    assert (code, row["bound"], row["limiter"], row["spills"]) == (0, "lds", "lds", 3)
    assert [row[f"{unit}_clocks"] for unit in ("matrix", "vector", "lds", "memory")] == [32, 16, 96, 77]
    assert (row["conflicts"], row["load_bytes"], row["outside"], row["lds"]) == (12, 16, 4, 3)
    assert row["counts"]["loop"]["lds"] == {"read 4": 2, "write 16": 1}
    assert document["counters"]["conflicts"] == ["SQ_LDS_BANK_CONFLICT"]
    assert document["counters"]["vector"] == ["SQ_INSTS_VALU"]


def test_the_table_has_a_line_for_each_kernel_and_no_empty_column(tmp_path: Path, run: Shown) -> None:
    code, out, _ = run(quality.main, library(tmp_path, "gfx942", gemm_one=amd(), gemm_two=amd(counts=None)))
    title, heading, first, second = out.splitlines()
    assert code == 0 and title.startswith("gemm for gfx942: 2 kernels") and "lines" not in heading.split()
    assert heading.split()[:5] == ["bound", "matrix", "vector", "LDS", "memory"]
    assert first.split()[:5] == ["lds", "32", "16", "96", "77"] and first.endswith("gemm_one")
    assert second.split()[:5] == ["–"] * 5 and second.endswith("gemm_two")


NVIDIA = {
    **{"registers": 168, "block_size": 384, "shared_bytes": 230400, "stack_bytes": 0, "spill_instructions": 12},
    **{"matrix_instructions": 8, "code_bytes": 39424, "workgroups_per_cu": 1, "occupancy_percent": 18},
}
CPU = {"registers": 32, "matrix_instructions": 825, "code_bytes": 90400, "stack_bytes": 1856}


@pytest.mark.parametrize(
    ("arch", "resources", "expected"),
    [
        ("sm_90a", NVIDIA, {"registers": 168, "spills": 12, "lds_bytes": 230400, "limiter": "registers"}),
        ("x86_64_v4", CPU, {"registers": 32, "scratch_bytes": 1856, "limiter": None, "matrix_instructions": 825}),
        ("gfx_of_a_user", amd(), {"limiter": None, "bound": "lds"}),
    ],
)
def test_other_backends_have_what_their_reports_tell(
    arch: str, resources: dict[str, Any], expected: dict[str, Any], tmp_path: Path, run: Shown
) -> None:
    code, out, _ = run(quality.main, library(tmp_path, arch, one=resources), "--json")
    (row,) = json.loads(out)["libraries"][0]["kernels"]
    assert code == 0 and {key: row[key] for key in expected} == expected
    assert run(quality.main, tmp_path, "--html")[0] == 0


def test_kernels_are_chosen_by_patterns(tmp_path: Path, run: Shown) -> None:
    folder = library(tmp_path, "gfx942", gemm_one=amd(), gemm_two=amd())
    both = ["gemm_one", "gemm_two"]
    for pattern, names in (("*_two", both[1:]), (f"{IDENTITY[:16]}*", both[:1]), ("*", both)):
        _, out, _ = run(quality.main, folder, "--json", "--kernel", pattern)
        assert [row["name"] for row in json.loads(out)["libraries"][0]["kernels"]] == names
    code, _, error = run(quality.main, folder, "--kernel", "conv*")
    assert code == 2 and "no kernel is called conv*" in error


def test_counts_of_a_launch_add_the_lines_that_it_moves(tmp_path: Path, run: Shown) -> None:
    folder, file = library(tmp_path, "gfx942", gemm_one=amd()), tmp_path / "executed.json"
    file.write_text(json.dumps({"symbol": f"kw_kernel_{IDENTITY[:16]}_gemm", "lines": 50682, "unique_lines": 8194}))
    _, out, _ = run(quality.main, folder, "--json", "--executed", file)
    (row,) = json.loads(out)["libraries"][0]["kernels"]
    assert row["lines_per_compulsory"] == 6.19 and row["executed"]["lines"] == 50682
    for wrong, why in (({"symbol": "x"}, "belong to no kernel"), ({"symbol": IDENTITY}, "have no lines")):
        file.write_text(json.dumps(wrong))
        code, _, error = run(quality.main, folder, "--executed", file)
        assert code == 2 and why in error


def test_the_page_has_a_bar_for_each_unit_and_escapes_names(tmp_path: Path, run: Shown) -> None:
    _, out, _ = run(quality.main, library(tmp_path, "gfx942", **{"gemm<one>": amd()}), "--html")
    assert out.count('class="track"') == 4 and 'class="bound lds" style="width: 100%"' in out
    assert 'style="width: 33%"' in out and "gemm&lt;one&gt;" in out and "gemm<one>" not in out
    assert "<code>SQ_LDS_BANK_CONFLICT</code>" in out and "http" not in out


@pytest.mark.parametrize("main", [quality.main, lambda given: compare.main([*given, *given])])
def test_what_is_no_library_is_refused(main: Callable[[list[str]], int], tmp_path: Path, run: Shown) -> None:
    code, _, error = run(main, tmp_path)
    assert code == 2 and "holds no manifest.json" in error
    (tmp_path / "manifest.json").write_text("[]")
    assert run(main, tmp_path)[0] == 2


def test_a_comparison_says_what_became_worse(tmp_path: Path, run: Shown) -> None:
    old = library(tmp_path / "old", "gfx942", gemm_one=amd(), gemm_two=amd())
    new = library(tmp_path / "new", "gfx942", gemm_one=amd(shift=6, vgpr_spills=0), gemm_two=amd())
    code, out, _ = run(compare.main, old, new)
    lines = out.splitlines()
    assert code == 0 and lines[0] == "gfx942 gemm_one" and lines[-1] == "1 kernel with the same numbers"
    assert any(line.strip().startswith("conflicts: 12 → ") and line.endswith("worse") for line in lines)
    assert "  spills: 3 → 2  better" in lines
    assert run(compare.main, old, new, "--fail-on-worse")[0] == 1
    assert run(compare.main, old, old, "--fail-on-worse") == (0, "2 kernels with the same numbers\n", "")


def test_a_comparison_lists_kernels_that_came_and_went(tmp_path: Path, run: Shown) -> None:
    old = library(tmp_path / "old", "gfx942", gemm_one=amd(), gemm_two=amd())
    new = library(tmp_path / "new", "gfx942", gemm_one=amd())
    _, out, _ = run(compare.main, old, new, "--json")
    assert json.loads(out) == {
        "added": [],
        "removed": [{"arch": "gfx942", "name": "gemm_two"}],
        "same": 1,
        "changed": [],
    }
    assert run(compare.main, old, new, "--fail-on-worse")[0] == 1
    assert run(compare.main, new, old, "--fail-on-worse")[0] == 0
