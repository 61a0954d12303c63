"""The command line through the compiler of the build; TILEWRIGHT_TREES names a JSON of tree folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tilewright.codegen import cli
from tilewright.dispatch import KernelLibrary
from tilewright.jit import command

pytestmark = pytest.mark.skipif("TILEWRIGHT_TREES" not in os.environ, reason="TILEWRIGHT_TREES is not set")

SPEC = {"dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]}


def test_missing_kernels_are_compiled_and_their_library_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    arguments = ["--arch", "x86_64_v3", "--spec", str(tmp_path / "spec.json"), "--cache", str(tmp_path / "cache")]
    assert cli.main(["jit", *arguments, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["compiled"] == made["kernels"] and made["arch"] == "x86_64_v3" and made["name"] == "jit"
    assert [kernel.name for kernel in KernelLibrary.load(Path(made["library"]).parent).kernels] == made["kernels"]
    assert json.loads(Path(made["manifest"]).read_text())["kernels"]

    monkeypatch.setenv("TILEWRIGHT_JIT", "off")
    assert command.main([*arguments]) == 0
    assert capsys.readouterr().out == made["library"] + "\n"
    assert command.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**made, "compiled": []}
    assert command.main([*arguments, "--name", "other"]) == command.EXIT_FAILED
    said = capsys.readouterr()
    assert said.out == "" and "TILEWRIGHT_JIT=off" in said.err
    monkeypatch.setenv("TILEWRIGHT_JIT", "on")
    assert command.main([*arguments, "--limit", "max_code_bytes=9"]) == command.EXIT_FAILED
    assert "bytes of code; allowed: at most 9 (max_code_bytes)" in capsys.readouterr().err
