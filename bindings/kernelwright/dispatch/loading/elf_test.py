from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelwright.dispatch.loading.elf import why_not_loadable


@pytest.fixture
def whole() -> bytes:
    return Path(sys.executable).resolve().read_bytes()


def test_a_whole_file_is_loadable() -> None:
    assert why_not_loadable(Path(sys.executable).resolve()) == ""


@pytest.mark.parametrize(
    ("keep", "reason"),
    [(0, "no ELF"), (63, "no ELF"), (64, "program headers"), (4096, "segment ends")],
)
def test_truncated_files_are_told(tmp_path: Path, whole: bytes, keep: int, reason: str) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(whole[:keep])
    assert reason in why_not_loadable(file)


def test_other_classes_are_refused(tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(whole[:4] + b"\x01" + whole[5:])
    assert "64-bit" in why_not_loadable(file)
