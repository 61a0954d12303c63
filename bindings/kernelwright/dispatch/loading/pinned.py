"""Load the file that was hashed, even if its path names another one by then."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import threading
from pathlib import Path
from types import TracebackType

_kept: dict[tuple[int, int], int] = {}
_lock = threading.Lock()
# Descriptors of loaded files by device and inode, open as long as the process: they are part of the names under which
# the dynamic linker knows the files. It treats a file as already loaded if the name or the inode is the same.
_digests: dict[tuple[int, int], str] = {}  # sha256 of the same files when they were loaded
_UNKNOWN = ""  # written to in the meantime


def _after_fork() -> None:
    """A child has one thread; another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _sha256(descriptor: int) -> str:
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(descriptor: int) -> tuple[int, int, int]:
    """Size, mtime and ctime, which change whenever the file is written."""
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


class Pinned:
    """A file opened once: hashed and loaded through one descriptor.

    Loading by path would load another file if the path were replaced after the comparison. A descriptor cannot be
    redirected, and ``/proc/self/fd/N`` names it to the dynamic linker.
    """

    def __init__(self, path: Path) -> None:
        """Open and hash the file. Raises OSError if it cannot be read."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._stamp = _stamp(descriptor)
            self.sha256 = _sha256(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    @property
    def name(self) -> Path:
        """A path of the open file, whatever its original path names now."""
        return Path(f"/proc/self/fd/{self._descriptor}")

    def load(self) -> ctypes.CDLL:
        """Map the file and run its constructors; the descriptor of a file loaded for the first time stays open.

        Raises OSError if the dynamic linker refuses it, would return the contents of an earlier load, or may have
        loaded something other than what was hashed.
        """
        status = os.fstat(self._descriptor)
        inode = (status.st_dev, status.st_ino)
        with _lock:
            if inode in _kept:
                if _digests[inode] != self.sha256:
                    raise OSError(
                        "this process loaded the file before, and it was overwritten since; start the process anew, "
                        "and put another file in place of a library (rename, install) instead of writing into it"
                    )
                return ctypes.CDLL(f"/proc/self/fd/{_kept[inode]}")
            if self._descriptor in _kept.values():  # someone closed ours; its number still names the other file
                fresh = fcntl.fcntl(self._descriptor, fcntl.F_DUPFD_CLOEXEC, max(_kept.values()) + 1)
                os.close(self._descriptor)
                self._descriptor = fresh
            self._check_contents(self._descriptor)
            opened = ctypes.CDLL(str(self.name))
            kept, self._descriptor = self._descriptor, -1
            _kept[inode], _digests[inode] = kept, _UNKNOWN
            self._check_contents(kept)
            _digests[inode] = self.sha256
            return opened

    def _check_contents(self, descriptor: int) -> None:
        """Raise OSError if the file was written to since it was hashed.

        A hard link or a change of mode changes ctime alone, as does resetting mtime; the file is then hashed again.
        """
        stamp = _stamp(descriptor)
        written = stamp[:2] != self._stamp[:2]
        if written or (stamp != self._stamp and _sha256(descriptor) != self.sha256):
            raise OSError(
                "it was written into while it was loaded; load it again in a new process, and put other files in place "
                "of a library (rename, install) instead of writing into it"
            )
        self._stamp = stamp

    def __enter__(self) -> Pinned:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
