"""Every toolchain that the command line names, through the command line; compilers are scripts that know --version."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT
from kernelwright.codegen.toolchains import system_tools
from kernelwright.codegen.toolchains.system_tools import SYSTEM_TOOLS

ARCH = {"host": "x86_64_v3", "hip": "gfx942", "cuda": "sm_90a"}
PINNED = [("host", "zig"), ("hip", "wheel"), ("hip", "stock"), ("cuda", "clang"), ("cuda", "stock")]
# Kind, word, the tool below a folder, what stands behind the colon, the variable, and what it is called in PATH.
SYSTEM = [
    ("host", "system", "bin/c++", "bin/c++", "CXX", "c++"),
    ("host", "system", "bin/g++", "bin/g++", "CXX", "g++"),
    ("hip", "rocm", "llvm/bin/clang++", ".", "ROCM_PATH", None),
    ("cuda", "nvcc", "bin/g++", "bin/g++", "CUDAHOSTCXX", "g++"),
    ("cuda", "system-nvcc", "bin/nvcc", "bin/nvcc", "CUDACXX", "nvcc"),
]
VARIABLES = ("CXX", "ROCM_PATH", "CUDAHOSTCXX", "CUDACXX")


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without compilers."""
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("trees.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    bare = {key: replace(tool, place=tool.place and str(tmp_path / "no place")) for key, tool in SYSTEM_TOOLS.items()}
    monkeypatch.setattr(system_tools, "SYSTEM_TOOLS", bare)


def write_tool(path: Path, code: str = "echo 'a compiler 1.0'") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)
    if "llvm" in str(path):
        path.with_name("ld.lld").write_bytes(path.read_bytes())
        path.with_name("ld.lld").chmod(0o755)


def planned(kind: str, word: str) -> dict[str, Any]:
    """The library of a plan with one kernel, and the words of its commands."""
    request = {"stage": "plan", "name": "g", "set": "gemm:essential", "archs": [ARCH[kind]], "toolchains": {kind: word}}
    Path("request.json").write_text(json.dumps(request))
    assert main(["plan", "--request", "request.json", "--response", "response.json"]) == 0
    response: dict[str, Any] = json.loads(Path("response.json").read_text())
    return response


def refused(capsys: pytest.CaptureFixture[str], kind: str, word: str) -> str:
    """The one sentence with which build, render and plan end, and exit code 2."""
    chosen = ["--arch", ARCH[kind], "--set", "gemm:essential", f"--{kind}-toolchain", word]
    Path("request.json").write_text(
        json.dumps(
            {"stage": "plan", "name": "g", "set": "gemm:essential", "archs": [ARCH[kind]], "toolchains": {kind: word}}
        )
    )
    said = set()
    for command in (
        ["build", *chosen, "--name", "g", "--trees", "trees.json", "--out", "out"],
        ["render", *chosen, "--out", "out"],
        ["plan", "--request", "request.json", "--response", "out"],
    ):
        assert main(command) == EXIT_BAD_INPUT
        said.add(capsys.readouterr().err)
        assert not Path("out").exists()
    (line,) = said
    assert line.startswith("error: ") and line.count("\n") == 1
    return line


@pytest.mark.parametrize(("kind", "word"), PINNED)
def test_pinned_toolchains_need_nothing_of_the_machine(
    kind: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (library,) = planned(kind, word)["libraries"]
    assert library["toolchains"][kind]
    assert (
        main(["render", "--arch", ARCH[kind], "--set", "gemm:essential", f"--{kind}-toolchain", word, "--out", "r"])
        == 0
    )
    capsys.readouterr()
    assert "takes no path; leave :/usr/bin/g++ out; with a path: " in refused(capsys, kind, f"{word}:/usr/bin/g++")


@pytest.mark.parametrize(("kind", "word", "tool", "behind", "variable", "name"), SYSTEM)
def test_a_tool_of_the_machine_is_found_and_fingerprinted(
    kind: str,
    word: str,
    tool: str,
    behind: str,
    variable: str,
    name: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "tools"
    write_tool(root / tool)
    path, program = (root / behind).resolve(), root / tool
    by_path = planned(kind, f"{word}:{path}")
    (library,) = by_path["libraries"]
    line = subprocess.run(["/usr/bin/sha256sum", str(program)], capture_output=True, check=True).stdout
    expected = hashlib.sha256(b"a compiler 1.0\n" + line).hexdigest()  # as the plugin computes it
    assert f"{path} {expected}" in library["toolchains"][kind]
    commands = [action for action in library["actions"] if str(path) in " ".join(action["argv"])]
    assert commands and all(expected in str(action["env"]) for action in commands)

    monkeypatch.setenv(variable, str(path))
    assert planned(kind, word) == by_path
    monkeypatch.delenv(variable)
    if name is not None:
        monkeypatch.setenv("PATH", str(program.parent))
        assert planned(kind, word) == by_path
    write_tool(program, "echo 'a compiler 1.1'")
    assert planned(kind, f"{word}:{path}") != by_path


@pytest.mark.parametrize(("kind", "word", "tool", "behind", "variable", "name"), SYSTEM)
def test_a_tool_that_is_missing_or_broken_is_bad_input(
    kind: str,
    word: str,
    tool: str,
    behind: str,
    variable: str,
    name: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = refused(capsys, kind, word)
    assert "was found by" in said and f"give its path: {word}:/" in said
    assert "cannot be run: No such file or directory; give" in refused(capsys, kind, f"{word}:/nowhere/x")
    assert "is not an absolute path; give" in refused(capsys, kind, f"{word}:bin/x")
    write_tool(tmp_path / tool, "echo broken >&2; exit 3")
    path = str((tmp_path / behind).resolve())
    assert "--version ended with 3: broken; give" in refused(capsys, kind, f"{word}:{path}")
    (tmp_path / tool).chmod(0o644)
    assert "cannot be run: Permission denied; give" in refused(capsys, kind, f"{word}:{path}")
    monkeypatch.setenv(variable, "ccache g++")
    assert "ccache g++" in refused(capsys, kind, word)


@pytest.mark.parametrize("kind", ARCH)
def test_a_word_that_is_none_is_bad_input(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("gcc", "system-nvcc:", "rocm:", "system:", ":"):
        said = refused(capsys, kind, word)
        assert f"unknown {kind} toolchain {word!r}" in said and "; allowed: " in said and "[:PATH]" in said
