"""The cache folder: its path, who may write to it, and which processes use it now."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwright.codegen.violations import SpecError

CACHE_VARIABLE = "KERNELWRIGHT_CACHE"
SHARED_VARIABLE = "KERNELWRIGHT_SHARED_CACHE"
"""The value ``on`` allows a cache that other users can write to."""

FOLDERS = ("actions", "failures", "libraries", "locks", "memory", "named", "running", "sandboxes", "texts", "trees")
_UNUSABLE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)
)
_LINKS = 40  # as many symbolic links as Linux follows in one path


class CacheError(SpecError):
    """A path that cannot be a cache, or one that must be written and cannot be; the message says what to do."""

    def __init__(self, root: Path, reason: str) -> None:
        super().__init__(
            f"the cache {root} cannot be used: {reason}; allowed: a folder that this user can write to, or one that is "
            "not there yet; name another (KERNELWRIGHT_CACHE, cache=, --cache), or change this one"
        )


def default_cache() -> Path:
    """``$KERNELWRIGHT_CACHE``, else ``$XDG_CACHE_HOME/kernelwright``, else ``~/.cache/kernelwright``."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kernelwright")


def is_shared() -> bool:
    """Whether the environment allows a cache that other users can write to. SpecError for an unknown value."""
    value = os.environ.get(SHARED_VARIABLE) or "off"
    if value not in ("on", "off"):
        raise SpecError(f"{SHARED_VARIABLE} is {value!r}; allowed: on, off")
    return value == "on"


def make_private(root: Path) -> None:
    """Create the missing folders of a cache, and the missing parents of ``root``, with mode 0700."""
    for folder in (*reversed(root.parents), root, *(root / name for name in FOLDERS)):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def check_folder(root: Path) -> None:
    """Raise CacheError if ``root``, or a path on the way to it, exists but is no folder: file, pipe, dead link."""
    for path in (*reversed(root.absolute().parents), root):
        if os.path.lexists(path) and not os.path.isdir(path):
            if not path.is_symlink():
                raise CacheError(root, f"{path} is no folder")
            raise CacheError(root, f"{path} is a link to {os.readlink(path)}, where no folder is")


@contextmanager
def usable(root: Path) -> Iterator[None]:
    """Turn an OSError for ``root`` itself into CacheError: it is not a folder, or is read-only.

    A full or broken disk stays an OSError, and so do errors of other files.
    """
    check_folder(root)
    try:
        yield
    except OSError as error:
        place, names = root.absolute(), (error.filename, error.filename2)
        paths = [Path(os.fsdecode(name)).absolute() for name in names if isinstance(name, (str, bytes))]
        own = [path for path in paths if place in (path, *path.parents) or path in place.parents]
        if error.errno not in _UNUSABLE or not own:
            raise
        raise CacheError(root, f"{own[0]}: {error.strerror}") from None


def why_untrusted(path: Path) -> str | None:
    """Return the folder below which another user could change what is read at ``path``, and why; None if nobody could.

    Checks every folder and link on the way from ``/`` to ``path``, which need not exist, and its direct subfolders.
    Each must belong to this user or root, and be writable only by its owner or by the owner's private group (the group
    of the same name without other members). In a folder with the sticky bit, such as ``/tmp``, others cannot replace
    what belongs to this user.
    """
    try:
        for step in _steps(path):
            reason = _why_untrusted(step)
            if reason:
                return reason
        for folder in sorted(path.iterdir()) if path.is_dir() else ():
            reason = _why_untrusted(folder) if folder.is_dir() else None
            if reason:
                return reason
    except OSError as error:
        return f"{path} cannot be examined: {error}"
    return None


def why_untrusted_result(path: Path) -> str | None:
    """Return the file or folder at or below ``path`` that another user could change, and why; None if nobody could.

    Even in a folder of this user alone, others may still own what they created while they could write there.
    """
    try:
        inner = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
        return next(filter(None, map(_why_untrusted, (path, *inner))), None)
    except OSError as error:
        return f"{path} cannot be examined: {error}"


def why_foreign(path: Path) -> str | None:
    """A file or folder at or below ``path`` that belongs to neither this user nor root; None if there is none."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                owner = os.lstat(os.path.join(folder, name)).st_uid
                if owner not in (0, os.geteuid()):
                    return f"{os.path.join(folder, name)} belongs to {_user(owner)}"
    return None


def _why_untrusted(path: Path) -> str | None:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to {_user(status.st_uid)}"
    if stat.S_ISLNK(status.st_mode) or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"{path} can be written by all users"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"{path} can be written by its group {_group(status.st_gid)}"
    return None


def _steps(path: Path) -> Iterator[Path]:
    """Yield every folder and link on the way from ``/`` to a path."""
    waiting = list(reversed(path.absolute().parts))
    here, links = Path(waiting.pop()), 0
    yield here
    while waiting:
        part = waiting.pop()
        if part == "..":
            here = here.parent
            continue
        here = here / part
        yield here
        if here.is_symlink():
            links += 1
            if links > _LINKS:
                raise OSError("too many links")
            target = here.readlink()
            waiting.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
            here = Path("/") if target.is_absolute() else here.parent


def _is_private_group(number: int) -> bool:
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _user(number: int) -> str:
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(number).pw_name}"
    return f"user {number}"


def _group(number: int) -> str:
    with contextlib.suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)


class RunningMark:
    """Marks that this process reads results of a cache, until it is closed or the process ends.

    Eviction keeps everything that was used since the oldest mark was made.
    """

    def __init__(self, root: Path) -> None:
        """Wait for an eviction that is under way, then make the mark."""
        self._descriptor = -1
        (root / "running").mkdir(parents=True, exist_ok=True)
        with _gate(root, fcntl.LOCK_SH):
            self._descriptor, path = tempfile.mkstemp(dir=root / "running")
            self._path, self._owner = Path(path), os.getpid()
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        """Remove the mark. May be called again; does nothing in a forked child, which shares the lock."""
        if self._descriptor >= 0 and self._owner == os.getpid():
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


@contextmanager
def evicting(root: Path) -> Iterator[float]:
    """Keep builds from starting within the block; yields the start of the oldest running build in epoch seconds.

    Yields infinity if no build runs. Marks of processes that have ended are removed.
    """
    (root / "running").mkdir(parents=True, exist_ok=True)
    with _gate(root, fcntl.LOCK_EX):
        yield min(_running(root), default=float("inf"))


def _running(root: Path) -> Iterator[float]:
    for path in (root / "running").iterdir():
        try:
            began = path.stat().st_mtime
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # the process just ended
            continue
        except PermissionError:  # another user's mark, in a shared cache
            yield began
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            yield began
        finally:
            os.close(descriptor)


@contextmanager
def _gate(root: Path, kind: int) -> Iterator[None]:
    descriptor = os.open(root / "gate", os.O_CREAT | os.O_RDONLY, 0o666)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def touch(path: Path) -> None:
    """Record that a result was used just now; does nothing in a read-only cache."""
    with contextlib.suppress(OSError):
        os.utime(path)
