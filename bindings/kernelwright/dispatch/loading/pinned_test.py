from __future__ import annotations

import ctypes
import hashlib
import os
from pathlib import Path

import pytest

from kernelwright.dispatch import DigestMismatchError, KernelLibrary, LibraryLoadError
from kernelwright.dispatch.loading import library, pinned
from kernelwright.dispatch.loading.elf import why_not_loadable
from kernelwright.dispatch.loading.pinned import Pinned
from kernelwright.dispatch.testdata.mocks import edit_manifest, write_library


def mapped_inodes() -> set[int]:
    return {int(line.split()[4]) for line in Path("/proc/self/maps").read_text().splitlines()}


def test_a_library_that_is_replaced_after_its_digest_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = write_library(tmp_path / "one"), write_library(tmp_path / "two", "MOCK_ABI=99")

    def replace(path: Path) -> str:
        os.replace(other / "libmock.so", folder / "libmock.so")
        return why_not_loadable(path)

    monkeypatch.setattr(library, "why_not_loadable", replace)
    assert KernelLibrary.load(folder).name == "mock"
    assert os.stat(folder / "libmock.so").st_ino not in mapped_inodes()


def test_what_was_hashed_is_loaded_under_any_number(tmp_path: Path) -> None:
    """The dynamic linker tells files apart by name first: a number that is used again must not give the old file."""
    path = write_library(tmp_path / "one") / "libmock.so"
    with Pinned(path) as first:
        assert first.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        first.load()
    number = pinned._kept[os.stat(path).st_dev, os.stat(path).st_ino]
    os.close(number)  # as programs do that close all files when they start a service
    other = write_library(tmp_path / "two", "MOCK_ABI=99") / "libmock.so"
    blocked = []
    while (free := os.open("/dev/null", os.O_RDONLY)) < number:
        blocked.append(free)
    os.close(free)
    with Pinned(other) as second:
        assert second.name.name == str(number)
        opened = second.load()
    assert opened.kw_library_get is not None and os.stat(other).st_ino in mapped_inodes()
    for free in blocked:
        os.close(free)


def test_loading_again_keeps_no_more_files_open(tmp_path: Path) -> None:
    folder = write_library(tmp_path)
    KernelLibrary.load(folder)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        KernelLibrary.load(folder)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_loaded_library_that_is_written_into_is_refused(tmp_path: Path) -> None:
    """The dynamic linker would give the old one, of which some pages may be new."""
    folder = write_library(tmp_path)
    KernelLibrary.load(folder)
    with (folder / "libmock.so").open("ab") as file:
        file.write(b"behind the last section")
    sha256 = hashlib.sha256((folder / "libmock.so").read_bytes()).hexdigest()
    edit_manifest(folder, sha256=sha256)
    with pytest.raises(LibraryLoadError, match="was overwritten since; start the process anew"):
        KernelLibrary.load(folder)


def test_a_library_that_is_written_into_before_it_is_mapped_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor names the same file then, with other contents; none of them runs."""
    folder = write_library(tmp_path / "one")
    other = (write_library(tmp_path / "two", "MOCK_ABI=99") / "libmock.so").read_bytes()

    def overwrite(path: Path) -> str:
        (folder / "libmock.so").write_bytes(other)
        return why_not_loadable(path)

    monkeypatch.setattr(library, "why_not_loadable", overwrite)
    with pytest.raises(LibraryLoadError, match="written into while it was loaded"):
        KernelLibrary.load(folder)
    assert os.stat(folder / "libmock.so").st_ino not in mapped_inodes()


def test_a_library_that_is_written_into_while_it_is_mapped_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_library(tmp_path)
    mapping = ctypes.CDLL

    def overwrite(name: str) -> ctypes.CDLL:
        opened = mapping(name)
        with (folder / "libmock.so").open("ab") as file:
            file.write(b"behind the last section")
        return opened

    monkeypatch.setattr(ctypes, "CDLL", overwrite)
    with pytest.raises(LibraryLoadError, match="written into while it was loaded"):
        KernelLibrary.load(folder)
    monkeypatch.undo()
    with pytest.raises(DigestMismatchError):
        KernelLibrary.load(folder)


def test_another_name_or_mode_of_a_library_is_no_change_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_library(tmp_path)

    def touch(path: Path) -> str:
        os.link(folder / "libmock.so", tmp_path / "linked.so")
        (folder / "libmock.so").chmod(0o700)
        return why_not_loadable(path)

    monkeypatch.setattr(library, "why_not_loadable", touch)
    assert KernelLibrary.load(folder).name == "mock"
