"""Size of a cache, and eviction of the least recently used results."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.codegen.building.cache_folder import evicting
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.sandbox import sandbox_in
from kernelwright.codegen.violations import SpecError

KINDS = ("actions", "libraries", "failures", "texts", "named")
"""Folders of a cache whose entries can be removed; ``named`` holds the caches of the compilers."""

_RESULT = re.compile(r"[0-9a-f]{64}(\.json)?")
# Nothing else is a result: neither what is being written, nor the files of a folder that is no cache.
_MARGIN_S = 5.0  # clock difference in seconds allowed between a file system and this machine


@dataclass(frozen=True)
class Entry:
    """A result in a cache: its size in bytes, and when it was last used, in seconds of the epoch."""

    path: Path
    kind: str
    size: int
    used: float

    @property
    def lock(self) -> str:
        """The name of the lock held by the process that makes this entry."""
        return f"library-{self.path.name}" if self.kind == "libraries" else self.path.stem


@dataclass
class Pruned:
    """What was removed, what is left, and how many entries were kept only because they are in use; sizes in bytes."""

    removed: int = 0
    removed_bytes: int = 0
    left: int = 0
    left_bytes: int = 0
    in_use: int = 0
    sizes: Counter[str] = field(default_factory=Counter)


def entries(root: Path) -> list[Entry]:
    """Return all results of a cache, least recently used first."""
    return sorted(
        (entry for kind in KINDS for entry in _entries(root / kind, kind)), key=lambda entry: (entry.used, entry.path)
    )


def prune(root: Path, max_bytes: int | None, max_age_s: float | None) -> Pruned:
    """Remove what was not used for ``max_age_s`` seconds, then the least recently used until ``max_bytes`` remain.

    Keeps what a process is making now, and what was used since the oldest running build began. Builds that start
    meanwhile wait. A cache that does not exist counts as empty. SpecError for a folder that no build has used as a
    cache.
    """
    done = Pruned()
    if not root.is_dir() or not any(root.iterdir()):
        return done
    if not (root / "gate").is_file():
        raise SpecError(
            f"{root} is no cache of kernels: no build has left its file 'gate' there; name another with --cache"
        )
    with evicting(root) as since, sandbox_in(root / "sandboxes") as (trash, _):
        cached = entries(root)
        total, now = sum(entry.size for entry in cached), time.time()
        busy = since < float("inf") or _commands_run(root, trash)
        for entry in cached:
            old = max_age_s is not None and now - entry.used > max_age_s
            large = max_bytes is not None and total > max_bytes
            if old or large:
                used = entry.used > since - _MARGIN_S or (entry.kind == "named" and busy)
                if not used and _remove(root, entry, trash):
                    total -= entry.size
                    done.removed += 1
                    done.removed_bytes += entry.size
                    continue
                done.in_use += 1
            done.left += 1
            done.left_bytes += entry.size
            done.sizes[entry.kind] += entry.size
    return done


def _remove(root: Path, entry: Entry, trash: Path) -> bool:
    """Move an entry to the trash at once; False if a process is making it. The trash is removed with its folder."""
    with entry_lock(root / "locks" / entry.lock, 0) as ours:
        if ours:
            os.rename(entry.path, trash / f"{entry.kind}-{entry.path.name}")
        return ours


def _commands_run(root: Path, own: Path) -> bool:
    """Whether a command of a build is running, even of a killed build: a command keeps its folder locked."""
    for folder in (root / "sandboxes").iterdir():
        if folder == own:
            continue
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _entries(folder: Path, kind: str) -> Iterator[Entry]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        try:
            if kind == "named" or _RESULT.fullmatch(path.name):
                yield Entry(path, kind, _size(path), path.stat().st_mtime)
        except FileNotFoundError:  # just replaced by another process
            continue


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)
