"""JSON files that processes add to: one at a time, and a reader never sees a partial file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Hold the lock of a file until the block ends; a missing file is created empty.

    Other processes may replace the file: the lock counts only if the file is still the one at the path.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    yield path
                    return
        finally:
            os.close(descriptor)


def replace(path: Path, text: str) -> None:
    """Write a locked file as a whole, keeping its permissions."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, path.stat().st_mode)
    os.replace(file.name, path)
