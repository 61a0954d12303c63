"""One lock per cache entry: the process that makes an entry holds it, and others wait for the result."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_S = 0.05


@contextmanager
def entry_lock(path: Path, timeout_s: float) -> Iterator[bool]:
    """Yield True with the lock ``path`` held, or False if it could not be acquired within ``timeout_s`` seconds.

    The kernel releases the lock when its holder ends, however it ends, so no lock is stale and nothing needs to be
    cleaned up. Two threads of one process exclude each other too. The last holder removes the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    while (descriptor := _try(path)) is None:
        if time.monotonic() >= deadline:
            yield False
            return
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # while locked, so that a waiting process notices that it is gone
        os.close(descriptor)


def _try(path: Path) -> int | None:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
