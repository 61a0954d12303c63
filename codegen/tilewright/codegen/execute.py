"""The local executor: runs a plan's actions in parallel, each in a folder of its own, and caches by content."""

from __future__ import annotations

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

from tilewright.codegen.plan import Action, RenderedFile
from tilewright.codegen.trees import TREES, cache_mount, mount
from tilewright.codegen.violations import SpecError


class ActionError(RuntimeError):
    """A command that failed or left an output out; the message holds everything it printed."""

    def __init__(self, action: Action, reason: str, output: str) -> None:
        self.action = action
        super().__init__(f"{action.description}: {reason}\n{' '.join(action.argv)}\n{output}".rstrip())


@dataclass
class LocalExecutor:
    """Runs actions with the trees found at ``tree_roots``, keeping every result below ``cache``.

    A result is looked up by command, environment, contents of inputs and identity of trees, so nothing runs twice and
    nothing stale is used; results appear by rename, so several processes may share a cache. At most ``jobs`` commands
    run at once, fewer if their memory would not fit into ``memory_mb``. ``progress`` hears one line per action.
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

        Raises ActionError for the first command that fails, SpecError for a tree without a folder, and ValueError for
        a plan whose inputs nobody makes.
        """
        self.cache = self.cache.resolve()
        ready = {file.path: self._store_text(file.text) for file in files}
        waiting = dict.fromkeys(actions)
        memory_mb = self.memory_mb if self.memory_mb is not None else available_memory_mb()
        for tree in sorted({tree for action in actions for tree in action.trees}):
            self._tree(tree)
        running: dict[Future[dict[str, Path]], Action] = {}
        with ThreadPoolExecutor(max_workers=self.jobs) as pool:
            try:
                while waiting or running:
                    for action in [action for action in waiting if all(path in ready for path in action.inputs)]:
                        if self._fits(action, running.values(), memory_mb):
                            del waiting[action]
                            running[pool.submit(self._run_one, action, dict(ready))] = action
                    if not running:
                        missing = sorted({p for action in waiting for p in action.inputs if p not in ready})
                        raise ValueError(f"no action makes {', '.join(missing)}")
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        ready.update(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return ready

    def _fits(self, action: Action, busy: Collection[Action], memory_mb: int) -> bool:
        return not busy or (
            len(busy) < self.jobs and sum(other.memory_mb for other in busy) + action.memory_mb <= memory_mb
        )

    def _run_one(self, action: Action, ready: Mapping[str, Path]) -> dict[str, Path]:
        entry = self.cache / "actions" / self._key(action, ready)
        if not entry.exists():
            self.progress(action.description)
            with tempfile.TemporaryDirectory(dir=_folder(self.cache / "sandboxes")) as sandbox:
                self._execute(action, Path(sandbox), ready)
                staged = _folder(Path(sandbox, "__outputs"))
                for output in action.outputs:
                    target = staged / output
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(Path(sandbox, output), target)
                _publish(staged, entry)
        return {output: entry / output for output in action.outputs}

    def _execute(self, action: Action, sandbox: Path, ready: Mapping[str, Path]) -> None:
        for path in action.inputs:
            target = sandbox / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ready[path], target)
        for output in action.outputs:
            (sandbox / output).parent.mkdir(parents=True, exist_ok=True)
        for tree in action.trees:
            (sandbox / mount(tree)).symlink_to(self._tree(tree)[0])
        for cache in action.caches:
            (sandbox / cache_mount(cache)).symlink_to(_folder(self.cache / "named" / cache))
        try:
            done = subprocess.run(
                action.argv, cwd=sandbox, env=dict(action.env), capture_output=True, text=True, errors="replace"
            )
        except OSError as error:
            raise ActionError(action, f"cannot be started: {error}", "") from None
        printed = done.stdout + done.stderr
        if done.returncode != 0:
            raise ActionError(action, f"failed with exit code {done.returncode}", printed)
        for output in action.outputs:
            if not (sandbox / output).is_file():
                raise ActionError(action, f"did not write {output}", printed)

    def _key(self, action: Action, ready: Mapping[str, Path]) -> str:
        parts = {
            "argv": action.argv,
            "env": sorted(action.env),
            "inputs": {path: file_digest(ready[path]) for path in action.inputs},
            "outputs": action.outputs,
            "trees": {tree: self._tree(tree)[1] for tree in action.trees},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _store_text(self, text: str) -> Path:
        path = self.cache / "texts" / hashlib.sha256(text.encode()).hexdigest()
        if not path.exists():
            _folder(path.parent)
            write_atomically(path, text.encode())
        return path

    def _tree(self, name: str) -> tuple[Path, str]:
        """A folder that shows the parts of a tree and nothing else, and a digest of what is in them."""
        with self._lock:
            if name not in self._trees:
                if name not in TREES or name not in self.tree_roots:
                    raise SpecError(f"no folder was given for tree {name!r}; given: {', '.join(self.tree_roots)}")
                self._trees[name] = _mount_tree(Path(self.tree_roots[name]), TREES[name].parts, self.cache / "trees")
            return self._trees[name]


def available_memory_mb() -> int:
    """Megabytes that this machine can give to new processes without swapping."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable"))


def file_digest(path: Path) -> str:
    """sha256 of a file's contents, 64 hex digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: readers see the old contents or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
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


def _publish(staged: Path, entry: Path) -> None:
    _folder(entry.parent)
    try:
        os.rename(staged, entry)
    except OSError:  # another process published the same result first
        if not entry.is_dir():
            raise


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
