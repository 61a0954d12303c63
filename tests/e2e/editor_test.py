"""clangd accepts every generated header with the commands that ``./pants kernels --compile-commands`` writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from e2e.workspace import Workspace
from remote import kernels
from remote.servers import private_environment


@pytest.fixture(scope="module")
def edited(workspace: Workspace) -> Workspace:
    workspace.write("e/BUILD", kernels.small(256))
    run = workspace.pants("kernels", "--compile-commands", "e:")
    assert run.exit_code == 0, run.stderr
    return workspace


def commands(edited: Workspace) -> list[dict[str, str]]:
    entries = json.loads((edited.root / "compile_commands.json").read_text())
    assert isinstance(entries, list)
    return entries


def test_there_is_an_entry_for_each_source(edited: Workspace) -> None:
    files = [Path(entry["file"]) for entry in commands(edited)]
    assert sorted(file.parts[0] for file in files if file.name.startswith("gemm_bf16")) == ["gfx942", "gfx942"]
    ours = {str(file.relative_to(edited.root)) for file in files if file.is_absolute()}
    assert "dispatcher_cpp/launchers/cpu/gemm/launch.cpp" in ours
    assert all((edited.root / "dist/compile_commands" / file).is_file() for file in files)


@pytest.mark.parametrize("kind", ["x86_64_v3/gemm_", "gfx942/gemm_", "launchers/cpu/gemm/launch.cpp"])
def test_clangd_finds_no_error(edited: Workspace, kind: str) -> None:
    clangd = private_environment("clangd") / "bin/clangd"
    for entry in commands(edited):
        if kind not in entry["file"]:
            continue
        check = [str(clangd), f"--check={Path(entry['directory']) / entry['file']}", "--check-locations=0"]
        done = subprocess.run(check, cwd=edited.root, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and "All checks completed, 0 errors" in done.stderr, done.stderr[-3000:]


def test_an_error_is_found(edited: Workspace) -> None:
    (entry,) = [entry for entry in commands(edited) if entry["file"].startswith("x86_64_v3/gemm_")]
    header = Path(entry["directory"]) / entry["file"]
    header.write_text(header.read_text() + "int x = no_such_name;\n")
    check = [str(private_environment("clangd") / "bin/clangd"), f"--check={header}", "--check-locations=0"]
    assert subprocess.run(check, cwd=edited.root, capture_output=True, timeout=300).returncode != 0
