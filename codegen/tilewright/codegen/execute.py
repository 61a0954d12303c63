"""The local executor: runs a plan's actions in parallel, each in a folder of its own, and caches by content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.codegen.memory import MemorySlots, available_memory_mb
from tilewright.codegen.plan import Action, RenderedFile, checked_path
from tilewright.codegen.trees import TREES, cache_mount, mount
from tilewright.codegen.violations import SpecError


class ActionError(RuntimeError):
    """A command that failed or left an output out; the message holds everything it printed."""

    def __init__(self, action: Action, reason: str, output: str) -> None:
        self.action = action
        super().__init__(f"{action.description}: {reason}\n{' '.join(action.argv)}\n{output}".rstrip())


_RECORD = "__sha256.json"
"""Beside the outputs of a cached result: their digests. No path of a plan starts so."""


@dataclass(frozen=True)
class _Made:
    """A file in the cache whose contents were found to have this sha256."""

    path: Path
    digest: str


@dataclass
class LocalExecutor:
    """Runs actions with the trees found at ``tree_roots``, keeping every result below ``cache``.

    A result is looked up by command, environment, contents of inputs and identity of trees, so nothing runs twice and
    nothing stale is used. Results are written to disk, then appear by rename, so several processes may share a cache
    and any of them may be killed; a result whose bytes are not those that were written is made again. At most ``jobs``
    commands run at once, and only as many as fit into ``memory_mb``, those of other builds with the same cache
    included. ``progress`` hears one line per action.
    """

    tree_roots: Mapping[str, Path]
    cache: Path
    jobs: int = 1
    memory_mb: int | None = None
    progress: Callable[[str], None] = lambda line: None
    _trees: dict[str, tuple[Path, str]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def run(self, files: Sequence[RenderedFile], actions: Sequence[Action]) -> dict[str, Path]:
        """Every rendered file and output by its path in the plan, as a file inside the cache (do not change it).

        Raises ActionError for the first command that fails, SpecError for a tree without a folder or a path that may
        not be, ValueError for a plan whose inputs nobody makes, and OSError for a cache that cannot be written.
        """
        self.cache = self.cache.resolve()
        for path in (*(file.path for file in files), *(path for action in actions for path in action.outputs)):
            checked_path(path, "output")
        ready = {file.path: self._store_text(file.text) for file in files}
        waiting = dict.fromkeys(actions)
        memory_mb = self.memory_mb if self.memory_mb is not None else available_memory_mb()
        for tree in sorted({tree for action in actions for tree in action.trees}):
            self._tree(tree)
        slots = MemorySlots(self.cache / "memory", memory_mb)
        running: dict[Future[dict[str, _Made]], Action] = {}
        with ThreadPoolExecutor(max_workers=self.jobs) as pool:
            try:
                while waiting or running:
                    for action in [action for action in waiting if all(path in ready for path in action.inputs)]:
                        if self._fits(action, running.values(), memory_mb):
                            del waiting[action]
                            running[pool.submit(self._run_one, action, dict(ready), slots)] = action
                    if not running:
                        missing = sorted({p for action in waiting for p in action.inputs if p not in ready})
                        raise ValueError(f"no action makes {', '.join(missing)}")
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        ready.update(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return {path: made.path for path, made in ready.items()}

    def _fits(self, action: Action, busy: Collection[Action], memory_mb: int) -> bool:
        return not busy or (
            len(busy) < self.jobs and sum(other.memory_mb for other in busy) + action.memory_mb <= memory_mb
        )

    def _run_one(self, action: Action, ready: Mapping[str, _Made], slots: MemorySlots) -> dict[str, _Made]:
        entry = self.cache / "actions" / self._key(action, ready)
        for _ in range(3):  # again only if somebody damages what was just written
            found = _verified(entry, action)
            if found is not None:
                return found
            self.progress(action.description)
            with tempfile.TemporaryDirectory(dir=_folder(self.cache / "sandboxes"), ignore_cleanup_errors=True) as made:
                sandbox = Path(made)
                with slots.hold(action.memory_mb) as slot:
                    self._execute(action, sandbox, ready, slot)
                staged = _folder(sandbox / "__outputs")
                for output in action.outputs:
                    target = staged / output
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(sandbox / output, target)
                digests = {output: file_digest(staged / output) for output in action.outputs}
                (staged / _RECORD).write_text(json.dumps(digests))
                _flush(staged)
                _publish(staged, entry, action, sandbox / "__old")
        raise OSError(errno.EIO, "what was written cannot be read back; check the disk", str(entry))

    def _execute(self, action: Action, sandbox: Path, ready: Mapping[str, _Made], slot: int) -> None:
        for path in action.inputs:
            target = sandbox / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ready[path].path, target)
        for output in action.outputs:
            (sandbox / output).parent.mkdir(parents=True, exist_ok=True)
        for tree in action.trees:
            (sandbox / mount(tree)).symlink_to(self._tree(tree)[0])
        for cache in action.caches:
            (sandbox / cache_mount(cache)).symlink_to(_folder(self.cache / "named" / cache))
        try:
            done = subprocess.run(
                action.argv,
                cwd=sandbox,
                env=dict(action.env),
                pass_fds=(slot,),  # a command that outlives us keeps its memory reserved
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise ActionError(action, f"cannot be started: {error}", "") from None
        printed = done.stdout + done.stderr
        if done.returncode != 0:
            raise ActionError(action, f"failed with exit code {done.returncode}", printed)
        for output in action.outputs:
            if not (sandbox / output).is_file():
                raise ActionError(action, f"did not write {output}", printed)

    def _key(self, action: Action, ready: Mapping[str, _Made]) -> str:
        parts = {
            "argv": action.argv,
            "env": sorted(action.env),
            "inputs": {path: ready[path].digest for path in action.inputs},
            "outputs": action.outputs,
            "trees": {tree: self._tree(tree)[1] for tree in action.trees},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _store_text(self, text: str) -> _Made:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        path = self.cache / "texts" / digest
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)
        return _Made(path, digest)

    def _tree(self, name: str) -> tuple[Path, str]:
        """A folder that shows the parts of a tree and nothing else, and a digest of what is in them."""
        with self._lock:
            if name not in self._trees:
                if name not in TREES or name not in self.tree_roots:
                    raise SpecError(f"no folder was given for tree {name!r}; given: {', '.join(self.tree_roots)}")
                self._trees[name] = _mount_tree(Path(self.tree_roots[name]), TREES[name].parts, self.cache / "trees")
            return self._trees[name]


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


def _mount_tree(root: Path, parts: Sequence[str], into: Path) -> tuple[Path, str]:
    found: dict[str, Path] = {}
    for part in parts:
        matches = sorted(root.glob(part))
        if not matches:
            raise SpecError(f"tree folder {root} has no {part}")
        found.update({str(match.relative_to(root)): match for match in matches})
    digest = hashlib.sha256()
    for name, path in sorted(found.items()):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                status = file.stat()  # size and time stand for contents: toolchain wheels are hundreds of megabytes
                digest.update(f"{name}/{file.relative_to(path)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    view = into / hashlib.sha256(f"{root.resolve()}\0{sorted(found)}".encode()).hexdigest()[:16]
    for name, path in found.items():
        link = view / name
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
    return view, digest.hexdigest()


def _verified(entry: Path, action: Action) -> dict[str, _Made] | None:
    """The outputs of a cached result, if each of them still has the digest that it was stored with."""
    try:
        recorded = json.loads((entry / _RECORD).read_bytes())
        made = {output: _Made(entry / output, file_digest(entry / output)) for output in action.outputs}
        if recorded == {output: item.digest for output, item in made.items()}:
            return made
    except (OSError, ValueError):
        pass
    return None


def _publish(staged: Path, entry: Path, action: Action, discarded: Path) -> None:
    """Put a result where it is looked for, instead of a damaged one; a sound one of another process stays."""
    _folder(entry.parent)
    while _verified(entry, action) is None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(entry, discarded)
        try:
            os.rename(staged, entry)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _flush(folder: Path) -> None:
    """Wait until files and folders are on disk."""
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
