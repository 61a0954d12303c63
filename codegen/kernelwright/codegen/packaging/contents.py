"""Files below a path: packages and everything else. No link is followed, and only regular files are opened."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from kernelwright.codegen.packaging import provenance

MANIFEST = "manifest.json"
WHEEL_ENDING = ".whl"
_MARKS = (MANIFEST, provenance.FILE)
MAX_TEXT = 1 << 26
"""The most bytes of a statement, manifest or envelope. A manifest of 10,000 kernels has 25 MB."""


@dataclass(frozen=True)
class Contents:
    """Wheels, folders of libraries, all regular files (wheels too), and anything else: path → why it is not read."""

    wheels: tuple[Path, ...]
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    refused: Mapping[Path, str]

    def of_folder(self, folder: Path) -> list[Path]:
        """The regular files in a folder, without those in its subfolders."""
        return [file for file in self.files if file.parent == folder]


def contents(path: Path) -> Contents:
    """Return what is at or below ``path``; for a file that is not a wheel, what is in its folder.

    ``path`` may be a link to a folder. Every other link is refused: its target can change without a trace here.
    """
    start = path
    if path.is_file() and path.suffix != WHEEL_ENDING:
        start = path.parent
        if not any((start / name).exists() for name in _MARKS):
            return Contents((), (), (), {})
    files, refused = _walk(start) if start.is_dir() else _one(start)
    wheels = tuple(file for file in files if file.suffix == WHEEL_ENDING)
    folders = {file.parent for file in (*files, *refused) if file.name in _MARKS}
    return Contents(wheels, tuple(sorted(folders)), tuple(files), refused)


def _one(path: Path) -> tuple[list[Path], dict[Path, str]]:
    why = _why_not_read(path.lstat())
    return ([], {path: why}) if why else ([path], {})


def _walk(start: Path) -> tuple[list[Path], dict[Path, str]]:
    files: list[Path] = []
    refused: dict[Path, str] = {}
    left = [start]
    while left:
        folder = left.pop()
        try:
            with os.scandir(folder) as entries:
                statuses = {folder / entry.name: entry.stat(follow_symlinks=False) for entry in entries}
        except OSError as error:
            refused[folder] = f"cannot be read: {error.strerror}"
            continue
        for path, status in statuses.items():
            if stat.S_ISDIR(status.st_mode):
                left.append(path)
            elif why := _why_not_read(status):
                refused[path] = why
            else:
                files.append(path)
    return sorted(files), dict(sorted(refused.items()))


def _why_not_read(status: os.stat_result) -> str:
    if stat.S_ISREG(status.st_mode):
        return ""
    if stat.S_ISLNK(status.st_mode):
        return "is a link; allowed: files and folders; put what it leads to in its place, or remove it"
    return "is a pipe, socket or device; allowed: files and folders; remove it"


def read_text(path: Path) -> bytes:
    """The bytes of a regular file of at most :data:`MAX_TEXT`. OSError for anything else, without waiting for it."""
    with _opened(path) as stream:
        data = stream.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise OSError(errno.EFBIG, f"has more than {MAX_TEXT} bytes", str(path))
    return data


def digest(path: Path) -> str:
    """Return the sha256 of a regular file of any size, 64 hex digits. OSError for anything else."""
    with _opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _opened(path: Path) -> BufferedReader:
    # Opened without following a link or waiting for a pipe's writer, and only then checked: its name may lead to
    # something else by now.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return os.fdopen(descriptor, "rb")
