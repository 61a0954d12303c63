from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building import mounted_trees
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.building.mounted_trees import mount_tree, tree_digest
from kernelwright.codegen.trees import Tree
from kernelwright.codegen.violations import SpecError

INCLUDE = Tree("of a test", ("include",))

OLD_NS = 1_000_000_000 * 10**9


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root/include"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.h").write_text("one")
    (folder / "deep/b.h").write_text("two")
    return tmp_path / "root"


def digest(root: Path) -> str:
    return tree_digest(root, INCLUDE, root.parent / "trees")


def replace_in_place(path: Path, text: str) -> None:
    """Other contents of the same size, with size and mtime as before."""
    before = path.stat()
    assert len(text) == before.st_size
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_change_with_a_pinned_mtime_is_built(tmp_path: Path) -> None:
    header = tmp_path / "own/include/kernelwright/abi.h"
    header.parent.mkdir(parents=True)
    header.write_text("one")
    for other in ("checks.h", "dtypes.h", "epilogue.h"):
        header.with_name(other).write_text("")
    os.utime(header, ns=(OLD_NS, OLD_NS))
    code = "open('out', 'w').write(open('__abi/include/kernelwright/abi.h').read())"
    read = Action("py", "Run Python", (sys.executable, "-c", code), (), ("out",), trees=("abi",))
    roots = {"abi": tmp_path / "own"}
    assert LocalExecutor(roots, tmp_path / "cache").run([], [read])["out"].read_text() == "one"
    replace_in_place(header, "two")
    assert LocalExecutor(roots, tmp_path / "cache").run([], [read])["out"].read_text() == "two"


def test_a_part_that_links_elsewhere_is_built_from_there(tmp_path: Path) -> None:
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "abi.h").write_text(version)
        for other in ("checks.h", "dtypes.h", "epilogue.h"):
            (tmp_path / version / other).write_text("")
    link = tmp_path / "own/include/kernelwright"
    link.parent.mkdir(parents=True)
    code = "open('out', 'w').write(open('__abi/include/kernelwright/abi.h').read())"
    read = Action("py", "Run Python", (sys.executable, "-c", code), (), ("out",), trees=("abi",))
    for version in ("one", "two"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / version)
        made = LocalExecutor({"abi": tmp_path / "own"}, tmp_path / "cache").run([], [read])
        assert made["out"].read_text() == version


@pytest.mark.parametrize("margin_s", [mounted_trees.MARGIN_S, 0.2])
def test_a_pinned_mtime_hides_no_change(root: Path, monkeypatch: pytest.MonkeyPatch, margin_s: float) -> None:
    """With the real margin contents are hashed each time; with a short one the digest is read from the memo."""
    monkeypatch.setattr(mounted_trees, "MARGIN_S", margin_s)
    for path in root.rglob("*.h"):
        os.utime(path, ns=(OLD_NS, OLD_NS))
    time.sleep(0.5)
    first = digest(root)
    assert digest(root) == first and any((root.parent / "trees").glob("*.json")) == (margin_s < 1)
    replace_in_place(root / "include/deep/b.h", "too")
    assert digest(root) != first


def test_old_files_are_hashed_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted_trees, "MARGIN_S", 0.0)
    time.sleep(0.05)
    first = digest(root)
    hashed: list[Path] = []

    def record(path: Path) -> str:
        hashed.append(path)
        return "digest"

    monkeypatch.setattr(mounted_trees, "file_digest", record)
    assert digest(root) == first and not hashed
    os.utime(root / "include/a.h")
    time.sleep(0.05)
    digest(root)
    assert len(hashed) == 2


def test_a_file_of_the_future_is_hashed_on_every_use(root: Path) -> None:
    later = time.time_ns() + 3600 * 10**9
    os.utime(root / "include/a.h", ns=(later, later))
    digest(root)
    assert not (root.parent / "trees").exists()


def test_a_damaged_memo_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted_trees, "MARGIN_S", 0.0)
    time.sleep(0.05)
    first = digest(root)
    (memo,) = (root.parent / "trees").glob("*.json")
    for damaged in ("{", "[]", memo.read_text().replace('"digest": "', '"digest": 0, "was": "')):
        memo.write_text(damaged)
        assert digest(root) == first


def test_the_digest_is_that_of_the_contents(root: Path, tmp_path: Path) -> None:
    first = digest(root)
    os.utime(root / "include/a.h")
    assert digest(root) == first
    other = tmp_path / "other"
    (root / "include").rename(tmp_path / "moved")
    other.mkdir()
    (other / "include").symlink_to(tmp_path / "moved")
    assert tree_digest(other, INCLUDE, tmp_path / "elsewhere") == first
    (tmp_path / "moved/a.h").rename(tmp_path / "moved/c.h")
    assert tree_digest(other, INCLUDE, tmp_path / "elsewhere") != first
    (tmp_path / "moved/c.h").rename(tmp_path / "moved/a.h")
    (tmp_path / "moved/a.h").chmod(0o755)
    assert tree_digest(other, INCLUDE, tmp_path / "elsewhere") != first


def test_links_are_followed_and_circles_left(root: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/c.h").write_text("three")
    (root / "include/linked").symlink_to(tmp_path / "linked")
    (root / "include/deep/circle").symlink_to(root / "include")
    (root / "include/nowhere").symlink_to(tmp_path / "nowhere")
    first = digest(root)
    (tmp_path / "linked/c.h").write_text("other")
    assert digest(root) != first


def test_a_part_that_is_missing_is_named(root: Path) -> None:
    with pytest.raises(SpecError, match="has no src"):
        mount_tree(root, Tree("of a test", ("include", "src")), root.parent / "trees")
