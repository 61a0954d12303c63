from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.building.sync import RECORD, sync_folder
from kernelwright.codegen.violations import SpecError


def test_only_what_changed_is_written_and_only_our_own_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("not generated")
    assert sync_folder(tmp_path, {"a/x.hpp": "x", "a/y.hpp": "y"}) == (2, 0)
    before = (tmp_path / "a/x.hpp").stat().st_mtime_ns
    assert sync_folder(tmp_path, {"a/x.hpp": "x", "b/z.hpp": "z"}) == (1, 1)
    assert (tmp_path / "a/x.hpp").stat().st_mtime_ns == before
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [RECORD, "a/x.hpp", "b/z.hpp", "mine.txt"]


def test_a_hand_edited_file_is_restored(tmp_path: Path) -> None:
    sync_folder(tmp_path, {"x": "x"})
    (tmp_path / "x").write_text("edited")
    assert sync_folder(tmp_path, {"x": "x"}) == (1, 0)


@pytest.mark.parametrize("record", ["{", "{}", '{"files": ["../outside"]}', '{"files": ["/etc/passwd"]}', "[]"])
def test_a_damaged_record_removes_nothing(tmp_path: Path, record: str) -> None:
    sync_folder(tmp_path, {"x": "x"})
    (tmp_path / RECORD).write_text(record)
    with pytest.raises(SpecError, match="is damaged"):
        sync_folder(tmp_path, {})
    assert (tmp_path / "x").exists()
