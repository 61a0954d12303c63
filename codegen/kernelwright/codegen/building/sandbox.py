"""The folder in which one command runs; it is removed afterwards, even if the process that made it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_GRACE_S = 60


@contextmanager
def sandbox_in(parent: Path) -> Iterator[tuple[Path, int]]:
    """Yield a new folder below ``parent``, and a file descriptor that keeps the folder while it is open.

    Folders of killed processes are removed by the next one; a child that inherited the descriptor keeps its folder
    until it ends.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _remove_dead(parent)
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as made:
        descriptor = os.open(made, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(made), descriptor
        finally:
            os.close(descriptor)


def _remove_dead(parent: Path) -> None:
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):  # another process removes it, or works in it
            if time.time() - folder.stat().st_mtime < _GRACE_S:  # its maker may not have locked it yet
                continue
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
