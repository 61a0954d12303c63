"""The command that counts a kernel, as builds run it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernelwright.codegen.resources.amd import MODULE
from kernelwright.codegen.resources.amd.command import counts_text, main
from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.codegen.resources.amd.metadata import ReportError
from kernelwright.codegen.resources.testing.loop import ASSEMBLY, METADATA
from kernelwright.codegen.toolchains.python import FILES, python_argv
from kernelwright.files.counts.instruction_set import instruction_set


@pytest.mark.parametrize(("helpers", "symbols", "block"), [([], ["k_gemm", "k_one"], 1024), (["one"], ["k_gemm"], 256)])
def test_functions_and_the_size_of_a_workgroup_are_those_of_the_metadata(
    helpers: list[str], symbols: list[str], block: int
) -> None:
    counted = json.loads(counts_text(ASSEMBLY, "gfx942", 4, helpers))
    assert counted == read_counts(ASSEMBLY, symbols, instruction_set("gfx942"), block, 4)


def test_it_runs_without_an_environment_and_with_its_own_files_alone(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(ASSEMBLY)
    command = python_argv(MODULE, "k.s", "k.json", "gfx942", "4", "one")
    done = subprocess.run([command[0], "-X", "importtime", *command[1:]], cwd=tmp_path, env={}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "k.json").read_text() == counts_text(ASSEMBLY, "gfx942", 4, ["one"])
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    own = sorted(name for name in imported if name.startswith("kernelwright."))
    assert "kernelwright.files.counts.mix" in own
    for name in own:
        path = Path(name.replace(".", "/"))
        assert any(path.with_suffix(".py").match(one) or (path / "__init__.py").match(one) for one in FILES), name


@pytest.mark.parametrize(
    ("text", "helpers", "message"),
    [
        ("", [], "no .amdgpu_metadata"),
        (ASSEMBLY, ["k_"], "no device function to count"),
        (ASSEMBLY.replace(".max_flat", ".other"), [], "no .max_flat_workgroup_size"),
        (METADATA, [], "no function k_gemm"),
    ],
)
def test_what_cannot_be_counted_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, helpers: list[str], message: str
) -> None:
    (tmp_path / "k.s").write_text(text)
    assert main([str(tmp_path / "k.s"), str(tmp_path / "k.json"), "gfx942", "4", *helpers]) == 1
    assert message in capsys.readouterr().err and not (tmp_path / "k.json").exists()


def test_an_unknown_instruction_set_is_a_defect_of_the_plan() -> None:
    with pytest.raises(KeyError, match="gfx1"):
        counts_text(ASSEMBLY, "gfx1", 4)
    with pytest.raises(ReportError):
        counts_text("", "gfx942", 4)
