"""Folders below ``~/.cache/kernelwright-tests`` where tests keep what they compile, for all tests of this user.

What is kept there has its key in what it was made of, so tests that share it see what they would make themselves.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def folder_for(name: str) -> Path:
    """The folder of this name, or one of this process where the user can have none."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir  # tests under Pants have no HOME
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache"), "kernelwright-tests", name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return own_folder() / name
    return folder if os.access(folder, os.W_OK | os.X_OK) else own_folder() / name


def digest_of(command: Sequence[str], *folders: Path) -> str:
    """A digest of a compiler's command, of the files and folders that it names, and of C sources in ``folders``.

    Files and folders with absolute paths count by their contents, so that the digest is the same for a command in
    another folder.
    """
    total = hashlib.sha256()
    for word in command:
        named = Path(word)
        known = named.is_absolute()
        part = _contents(named) if known and named.is_file() else _sources(named) if known and named.is_dir() else word
        total.update(f"{len(part)} {part}".encode())
    for folder in folders:
        total.update(_sources(folder).encode())
    return total.hexdigest()


def _sources(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".c", ".cpp", ".h", ".hpp"))
    listed = "\n".join(f"{file.relative_to(folder)} {_contents(file)}" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _contents(file: Path) -> str:
    state = file.stat()
    return _read(file, state.st_mtime_ns, state.st_size)


@cache
def _read(file: Path, mtime_ns: int, size: int) -> str:
    """Once for each state of a file: a compiler has more than 100 MB."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@cache
def own_folder() -> Path:
    """A folder of this process, which is gone when it ends; forks that end leave it."""
    folder, process = Path(tempfile.mkdtemp(prefix="kernelwright-")), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
