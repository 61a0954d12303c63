from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.interface.plugin_data import plugin_data
from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.lean import ck_tile, made
from kernelwright.codegen.lean.rewrite import Edit, Header
from kernelwright.codegen.trees import TREES
from kernelwright.codegen.violations import SpecError

UPSTREAM = f"{ck_tile.FOLDER}include/ck_tile/a.hpp"
SHELL = ("/bin/sh", "-c", "cat __ck_tile_lean/include/ck_tile/a.hpp > out")
READ = Action("read", "Read", SHELL, (), ("out",), ("ck_tile_lean",))


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a small tree, for which a rewriting of one header is known."""
    sha256 = hashlib.sha256(b"int x = 1;\n").hexdigest()
    header = Header(UPSTREAM, sha256, (Edit("int x = ", ";", "2"),))
    monkeypatch.setitem(made._HEADERS, "ck_tile_lean", (header,))
    (tmp_path / "wheel" / UPSTREAM).parent.mkdir(parents=True)
    (tmp_path / "wheel" / UPSTREAM).write_text("int x = 1;\n")
    return tmp_path / "wheel"


def test_every_tree_that_is_made_has_headers_and_a_source() -> None:
    of = {name: tree.made_of for name, tree in TREES.items() if tree.made_of}
    assert set(of) == set(made._HEADERS) == set(made._FOLDERS)
    assert set(of.values()) <= set(TREES)
    described = plugin_data()["trees"]
    for name, source in of.items():
        assert described[name]["origin"] == "made" and described[name]["of"] == source
        assert described[name]["reads"] == list(made.reads(name))


def test_files_stand_below_include(wheel: Path) -> None:
    assert made.made_files("ck_tile_lean", wheel) == {"include/ck_tile/a.hpp": "int x = 2;\n"}


def test_a_folder_is_named_after_what_it_holds_and_mended(wheel: Path, tmp_path: Path) -> None:
    folder = made.made_folder("ck_tile_lean", wheel, tmp_path / "trees")
    header = folder / "include/ck_tile/a.hpp"
    header.write_text("damaged")
    assert made.made_folder("ck_tile_lean", wheel, tmp_path / "trees") == folder
    assert header.read_text() == "int x = 2;\n"


def test_the_local_executor_makes_the_tree(wheel: Path, tmp_path: Path) -> None:
    executor = LocalExecutor({"ck_tile": wheel}, tmp_path / "cache")
    assert executor.run([], [READ])["out"].read_text() == "int x = 2;\n"
    with pytest.raises(SpecError, match="no folder was given for tree 'ck_tile'"):
        LocalExecutor({}, tmp_path / "cache").run([], [READ])


def test_another_release_is_refused_before_anything_runs(wheel: Path, tmp_path: Path) -> None:
    (wheel / UPSTREAM).write_text("int x = 3;\n")
    with pytest.raises(SpecError, match="install the pinned release"):
        LocalExecutor({"ck_tile": wheel}, tmp_path / "cache").run([], [READ])
    (wheel / UPSTREAM).unlink()
    with pytest.raises(SpecError, match="the tree ck_tile has no"):
        made.made_files("ck_tile_lean", wheel)


def test_a_request_is_answered_with_the_files(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__ck_tile").symlink_to(wheel)
    monkeypatch.chdir(tmp_path)
    response = respond({"stage": "tree", "name": "ck_tile_lean"})
    assert response == {"files": {"include/ck_tile/a.hpp": "int x = 2;\n"}}
    with pytest.raises(SpecError, match="allowed: ck_tile_lean, cutlass_lean"):
        respond({"stage": "tree", "name": "zig"})
