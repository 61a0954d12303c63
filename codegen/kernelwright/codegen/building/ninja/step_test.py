from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from kernelwright.codegen.building.ninja.step import ROOTS, StepRequest, generator_digest, main, stamp
from kernelwright.codegen.packaging.provenance import sha256

INCLUDE = Path(__file__).parents[5] / "dispatcher_cpp/include"


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder with the tree ``abi``, whose headers a test may change, and a rendered file."""
    shutil.copytree(INCLUDE / "kernelwright", tmp_path / "own/include/kernelwright")
    roots = tmp_path / ROOTS
    roots.parent.mkdir()
    roots.write_text(json.dumps({"abi": str(tmp_path / "own")}))
    (tmp_path / "a.hpp").write_text("// rendered\n")
    monkeypatch.chdir(tmp_path)
    assert main(["trees", "abi=0"]) == 0
    return tmp_path


def described(generator: str, tree: str = "abi") -> list[str]:
    """The command that describes a library, of a request that no statement can be made of."""
    asked = StepRequest(
        library={}, trees=[tree], rendered={"a.hpp": sha256(b"// rendered\n")}, models={}, generator=generator
    )
    Path("request.json").write_text(asked.model_dump_json())
    return ["library", "request.json", "."]


def change(path: Path) -> None:
    path.write_text(path.read_text() + "// changed\n")


def test_a_digest_is_written_where_headers_changed(out: Path) -> None:
    path = out / stamp("abi")
    before = path.read_text(), path.stat().st_ino
    os.utime(out / "own/include/kernelwright/abi.h")
    assert main(["trees", "abi=0"]) == 0
    assert (path.read_text(), path.stat().st_ino) == before  # Ninja compares times, so it is not written anew
    change(out / "own/include/kernelwright/abi.h")
    assert main(["trees", "abi=0"]) == 0
    assert path.read_text() != before[0]


def test_nothing_is_said_of_a_library_whose_sources_changed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = described(generator_digest())
    assert main(ask) == 1  # nothing has changed: the request itself is refused
    assert "library description lacks name" in capsys.readouterr().err
    assert main(described("0" * 64)) == 1
    assert capsys.readouterr().err.startswith("error: kernelwright itself changed since Ninja or kernelwright read it")
    ask = described(generator_digest())
    change(out / "own/include/kernelwright/abi.h")
    assert main(ask) == 1
    assert capsys.readouterr().err.startswith("error: the tree abi changed since ")
    assert main(["trees", "abi=0"]) == 0
    change(out / "a.hpp")
    assert main(ask) == 1
    assert capsys.readouterr().err.startswith("error: a.hpp changed since ")
    assert not (out / "manifest.json").exists() and not (out / "provenance.json").exists()


def test_what_cannot_be_read_is_one_message(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trees", "zig=0"]) == 1
    assert capsys.readouterr().err == "error: no folder was given for tree 'zig'; given: abi\n"
    assert main(["library", "nothing.json", "."]) == 1
    assert capsys.readouterr().err == "error: cannot read 'nothing.json': No such file or directory; check the path\n"
    Path("request.json").write_text("{}")
    assert main(["library", "request.json", "."]) == 1
    assert "request.json is wrong: missing field 'library'" in capsys.readouterr().err
