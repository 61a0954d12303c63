"""What tests keep of one another: its key changes with all that it is made of, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.dispatch.testdata import kept


def made(folder: Path) -> list[str]:
    (folder / "include").mkdir(parents=True)
    (folder / "include/a.h").write_text("int a;")
    (folder / "x.c").write_text("int x;")
    return ["cc", "-O2", "-I", str(folder / "include"), str(folder / "x.c"), ""]


def test_a_command_in_another_folder_has_the_same_digest(tmp_path: Path) -> None:
    assert kept.digest_of(made(tmp_path / "a")) == kept.digest_of(made(tmp_path / "b"))


@pytest.mark.parametrize("changed", ["x.c", "include/a.h", "include/new.hpp", "common/b.h"])
def test_every_source_counts(tmp_path: Path, changed: str) -> None:
    command, common = made(tmp_path), tmp_path / "common"
    common.mkdir()
    before = kept.digest_of(command, common)
    (tmp_path / changed).write_text("int other;")
    assert kept.digest_of(command, common) != before


def test_every_word_counts_in_its_order(tmp_path: Path) -> None:
    command = made(tmp_path)
    digests = {kept.digest_of(words) for words in (command, command[::-1], command[:-1], [*command, "-O3"])}
    assert len(digests) == 4


def test_a_user_who_can_have_no_folder_gets_one_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = kept.folder_for("no such name")
    assert not folder.is_relative_to(tmp_path)
    kept.folder_for.cache_clear()
