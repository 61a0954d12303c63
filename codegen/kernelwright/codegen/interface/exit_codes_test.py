from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

from kernelwright.codegen.interface import exit_codes
from kernelwright.codegen.interface.cli import main

DOCS = Path(__file__).resolve().parents[4] / "docs/exit_codes.md"


def test_the_page_lists_every_code() -> None:
    codes = [value for name, value in vars(exit_codes).items() if name.startswith("EXIT_")]
    listed = [int(code) for code in re.findall(r"^\| (\d) \|", DOCS.read_text("utf-8"), re.MULTILINE)]
    assert listed == [0, *codes] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("expression", ["c.tile_m ==", "c.tile_o == 1", "c.tile_m < 0", "'%9d' % 1", "-" * 60 + "1"])
@pytest.mark.parametrize("command", ["kernels", "render", "build", "plan"])
def test_a_filter_error_is_bad_input_everywhere(
    command: str, expression: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text(
        json.dumps({"stage": "expand", "set": "gemm:essential", "archs": ["x86_64_v3"], "filter": expression})
    )
    (tmp_path / "trees.json").write_text("{}")
    chosen = ["--set", "gemm:essential", "--arch", "x86_64_v3", f"--filter={expression}"]
    out = str(tmp_path / "out")
    arguments = {
        "kernels": chosen,
        "render": [*chosen, "--out", out],
        "build": [*chosen, "--out", out, "--name", "x", "--trees", str(tmp_path / "trees.json")],
        "plan": ["--request", str(request), "--response", out],
    }
    assert main([command, *arguments[command]]) == exit_codes.EXIT_BAD_INPUT
    assert "error: filter" in capsys.readouterr().err and not Path(out).is_file()


@pytest.mark.parametrize(("number", "code"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ENOSPC, 1), (errno.EIO, 1)])
def test_a_full_disk_is_no_bad_input(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("kernelwright.codegen.interface.cli.select", refuse)
    assert main(["kernels", "--set", "gemm:essential", "--arch", "x86_64_v3"]) == code
    assert os.strerror(number) in capsys.readouterr().err
