from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.files.commands import run_module
from kernelwright.simulator.testing.objects import Kernel, assemble_text, make_object
from kernelwright.simulator.tools.cli import main

MOVE = ("SOP1", "s_mov_b32", {"sdst": "s5", "ssrc0": 7})
UNKNOWN = ("SOPP", "s_sethalt", {"simm16": 1})
END = ("SOPP", "s_endpgm")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Two code objects inside another file, the second with an unmodelled instruction."""
    good = make_object("gfx942", {"one_gemm": Kernel(assemble_text("gfx942", [MOVE, END]))})
    bad = make_object("gfx1201", {"other_sum": Kernel(assemble_text("gfx1201", [MOVE, UNKNOWN, END]))})
    path = tmp_path / "libgemm.so"
    path.write_bytes(b"a host library" + good + b"\0" * 7 + bad)
    (tmp_path / "good.co").write_bytes(good)
    return path


def test_without_its_extra_the_program_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.simulator.tools.cli", None)
    assert run_module("kernelwright.simulator.tools.cli", "simulator") == 2
    said = capsys.readouterr().err
    assert (
        said.startswith("error: ")
        and said.endswith("pip install 'kernelwright[simulator]'\n")
        and "\n" not in said[:-1]
    )


def test_coverage_says_what_is_missing(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(library)]) == 1
    text = capsys.readouterr().out
    assert "5 static instructions in 2 code objects, 1 without semantics" in text
    assert "1 x s_sethalt, first at pc 0x4: s_sethalt (SOPP) has no semantics on gfx1201" in text


def test_coverage_of_what_is_modelled_succeeds(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = library.with_name("good.co")
    assert main(["coverage", "--json", str(good)]) == 0
    assert json.loads(capsys.readouterr().out) == {str(good): {"objects": 1, "instructions": 2, "missing": []}}


@pytest.mark.parametrize(
    "line", ["", "coverage", "coverage /nowhere.so", f"coverage {__file__}", "instructions --arch x"]
)
def test_wrong_use_is_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert "error: " in capsys.readouterr().err


def test_the_table_lists_what_is_modelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", "--arch", "gfx942", "--json"]) == 0
    by_name = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert by_name["s_mov_b32"] == {"family": "SOP1", "name": "s_mov_b32", "class": "scalar"}
    assert by_name["s_sethalt"]["class"] == ""
    assert main(["instructions", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    modelled, known = summary["SOPC"]["gfx1201"]
    assert 0 < modelled <= known
    assert "gfx942" not in summary["VOPD"]


def test_a_function_that_is_not_there_is_wrong_use(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disassemble", str(library), "--kernel", "nope"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "no function has a name with 'nope' in it; there are: " in said.err
    assert "other_sum" in said.err


def test_the_disassembly_shows_pc_and_instruction(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disassemble", str(library), "--kernel", "sum"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["// gfx1201", "other_sum:"]
    assert lines[2].split() == ["s_mov_b32", "s5,", "7", "//", "0x0000"]
    assert len(lines) == 5


def test_the_disassembly_shows_operands_by_name(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disassemble", str(library), "--kernel", "sum", "--fields"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "other_sum: (gfx1201)"
    assert lines[1] == "     0x0  s_mov_b32 sdst=s5, ssrc0=7"
    assert len(lines) == 4
