"""The commands of docs/migrating.md, to the letter, in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages.pages import DOCS, blocks, script

PAGE = DOCS / "migrating.md"
HEADING = "Generating headers"


def program(path: Path, *command: str) -> None:
    """A program that starts a command with its own arguments."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    path.chmod(0o755)


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    program(tmp_path / "bin/python", sys.executable)
    program(tmp_path / "bin/kernelwright", sys.executable, "-m", "kernelwright.dispatch.tools.command")
    return tmp_path


def run(reader: Path, commands: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{reader / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "PYTHONPATH": ":".join(str(Path(entry).resolve()) for entry in sys.path if entry),
    }
    done = subprocess.run(
        ["bash", "-c", commands], cwd=reader, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_run_in_their_order(reader: Path) -> None:
    said = run(reader, script(PAGE, HEADING))
    assert "gfx942: AMD Instinct MI300 series" in said and "gemm.layout: " in said
    registry = json.loads((reader / "out/registry.json").read_text())
    # What the last command asked for: the others' files were removed.
    assert {kernel["arch"] for kernel in registry["kernels"]} == {"gfx942"}
    names = sorted(path.stem for path in (reader / "out/gfx942").glob("*.hpp"))
    assert len(names) == 2 and all(name.startswith("gemm_bf16_rcr_compv") for name in names)


@pytest.mark.parametrize("number", [0, 1])
def test_each_block_generates_by_itself(reader: Path, number: int) -> None:
    config = blocks(PAGE, "json", HEADING)[0]
    (reader / str(config.file)).write_text(config.text)
    run(reader, f"set -euo pipefail\n{blocks(PAGE, 'sh', HEADING)[number].text}")
    assert json.loads((reader / "out/registry.json").read_text())["kernels"]


def test_all_commands_of_the_page_are_executed() -> None:
    by_heading = {block.heading: block for block in blocks(PAGE, "sh")}
    # tests/downstream executes the second, with the wheels.
    assert list(by_heading) == [HEADING, "`gpu_helper`"]
    assert not blocks(PAGE, ""), "a block without a kind is not executed"
