"""Content-addressed results on disk: written whole or not at all, verified on every read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_DIGESTS = "__sha256.json"
_COST = "__cost.json"
# Files beside the outputs of a cached result: their digests and their cost. No path of a plan starts so.


@dataclass(frozen=True)
class Made:
    """A file in the cache whose contents were verified to have this sha256."""

    path: Path
    digest: str


@dataclass(frozen=True)
class Cost:
    """The cost of a command: processor seconds (including its children), elapsed seconds, peak megabytes."""

    cpu_s: float
    elapsed_s: float
    peak_mb: int


def verified(entry: Path, outputs: Iterable[str]) -> dict[str, Made] | None:
    """Return the outputs of a cached result, if each still has the digest that it was stored with."""
    try:
        recorded = json.loads((entry / _DIGESTS).read_bytes())
        made = {output: Made(entry / output, file_digest(entry / output)) for output in outputs}
        if recorded == {output: item.digest for output, item in made.items()}:
            return made
    except (OSError, ValueError):
        pass
    return None


def cost_of(entry: Path) -> Cost | None:
    """Return the cost of a cached result; None if it was not recorded."""
    try:
        return Cost(**json.loads((entry / _COST).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def seal(staged: Path, outputs: Iterable[str], cost: Cost, shared: bool = False) -> None:
    """Add digests and cost to the folder of a new result and wait until all of it is on disk.

    No other user can write to its files, whatever the umask, nor to its folders unless the cache is ``shared``.
    """
    digests = {output: file_digest(staged / output) for output in outputs}
    (staged / _DIGESTS).write_text(json.dumps(digests))
    (staged / _COST).write_text(json.dumps(asdict(cost)))
    close_to_others(staged, shared)
    flush(staged)


def keep(sandbox: Path, outputs: Sequence[str], entry: Path, cost: Cost, shared: bool) -> None:
    """Store the outputs of an action, which lie in the sandbox, as its result."""
    staged = sandbox / "__outputs" / entry.name
    for output in outputs:
        target = staged / output
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(sandbox / output, target)
    seal(staged, outputs, cost, shared)
    publish(staged, entry, outputs, sandbox / f"__old_{entry.name}")


def close_to_others(staged: Path, shared: bool) -> None:
    """Remove write permission of group and others from files, and from folders unless the cache is ``shared``."""
    for path in (staged, *staged.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and not shared):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


def publish(staged: Path, entry: Path, outputs: Iterable[str], discarded: Path) -> None:
    """Move a sealed result to its entry, replacing a damaged one; a sound result of another process stays."""
    listed = tuple(outputs)
    entry.parent.mkdir(parents=True, exist_ok=True)
    while verified(entry, listed) is None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(entry, discarded)
        try:
            os.rename(staged, entry)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def flush(folder: Path) -> None:
    """Wait until files and folders are on disk."""
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def file_digest(path: Path) -> str:
    """sha256 of a file's contents, 64 hex digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: readers see the old contents or the new, never a part, even after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_json(path: Path) -> Mapping[str, object] | None:
    """Read a JSON object written beside results; None if it is missing or damaged."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
