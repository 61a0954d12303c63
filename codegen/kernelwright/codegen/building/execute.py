"""The local executor: runs a plan's actions in parallel, each in its own folder, and caches results by content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import heapq
import itertools
import json
import shutil
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelwright.codegen.actions import Action, RenderedFile, checked_path
from kernelwright.codegen.batching.batch import Batch, Joined, UncuttableError
from kernelwright.codegen.building.cache_folder import RunningMark, make_private, touch, usable
from kernelwright.codegen.building.failures import (
    ActionError,
    BuildError,
    TimeLimitError,
    remember,
    remember_time_limit,
    remembered,
)
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.memory import MemorySlots, available_memory_mb
from kernelwright.codegen.building.mounted_trees import MountedTrees
from kernelwright.codegen.building.run_command import TIMEOUT_S, RunningCommands, run_command
from kernelwright.codegen.building.sandbox import sandbox_in
from kernelwright.codegen.building.schedule import Experience, urgencies
from kernelwright.codegen.building.store import Cost, Made, cost_of, file_digest, keep, verified, write_atomically
from kernelwright.codegen.building.watcher import Watcher
from kernelwright.codegen.toolchains.python import files_digest, is_python
from kernelwright.codegen.trees import cache_mount, mount

__all__ = ["ActionError", "BuildError", "LocalExecutor", "Watcher", "file_digest", "write_atomically"]


@dataclass(frozen=True)
class _Result:
    made: dict[str, Made]
    cost: Cost | None
    cached: bool


@dataclass
class LocalExecutor:
    """Runs actions with the trees found at ``tree_roots``, keeping every result below ``cache``.

    Results are keyed by command, environment, contents of inputs and identity of trees, so nothing runs twice and
    nothing stale is used. Results are written to disk, then appear by rename, so several processes may share a cache
    and any of them may be killed; a result whose bytes have changed is made again. Processes wait for a result that
    another one is making, at most ``lock_timeout_s`` seconds each; then they make it themselves. A command that failed
    fails again without being run until its inputs change, or with ``retry_failed``.

    At most ``jobs`` commands run at once, and only as many as fit into ``memory_mb``, including commands of other
    builds with the same cache; those on the critical path start first. A command that takes longer than ``timeout_s``
    seconds is ended with all that it started. ``progress`` receives one line per command, ``watcher`` an event per
    action. ``costs`` holds the costs of a run, by action id.

    The cache's folders are made for this user alone (mode 0700), or by the umask if it is ``shared``. Results that a
    run found there are not evicted before the next run, or the end of this object. ``check`` may refuse a path before
    it is read.
    """

    tree_roots: Mapping[str, Path]
    cache: Path
    jobs: int = 1
    memory_mb: int | None = None
    progress: Callable[[str], None] = lambda line: None
    watcher: Watcher = field(default_factory=Watcher)
    retry_failed: bool = False
    lock_timeout_s: float = 1800
    timeout_s: float = TIMEOUT_S
    shared: bool = False
    check: Callable[[Path], None] = lambda path: None
    costs: dict[str, Cost] = field(default_factory=dict, init=False)
    _trees: MountedTrees = field(init=False)
    _ran: dict[Action, Path] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _running: RunningCommands = field(default_factory=RunningCommands, init=False)
    _mark: RunningMark | None = field(default=None, init=False)

    def run(
        self,
        files: Sequence[RenderedFile],
        actions: Sequence[Action],
        keep_going: bool = False,
        batches: Sequence[Batch] = (),
    ) -> dict[str, Path]:
        """Return every rendered file and output by its path in the plan, as a file inside the cache (do not change it).

        Members of ``batches`` without a result are made by one command, and each result is stored as its action's own.
        If that command fails, or its output cannot be divided, each is made by its own command.

        Raises ActionError for the first command that fails; with ``keep_going`` everything that can be made is made,
        then BuildError holds every failure. SpecError: a tree without a folder, or an illegal path; ValueError: a plan
        with inputs that no action makes; CacheError: a cache that cannot be written; OSError: a full or broken disk.
        """
        with usable(self.cache):
            return self._run(files, actions, keep_going, batches)

    def _run(
        self, files: Sequence[RenderedFile], actions: Sequence[Action], keep_going: bool, batches: Sequence[Batch]
    ) -> dict[str, Path]:
        self._prepare(files, actions)
        self._running = RunningCommands()
        self._mark = RunningMark(self.cache)
        ready = {file.path: self._store_text(file.text) for file in files}
        self._ran.clear()
        run = _Run(self, actions, ready, keep_going, batches)
        try:
            with ThreadPoolExecutor(max_workers=self.jobs) as pool:
                try:
                    run.until_done(pool)
                except BaseException as error:
                    if not isinstance(error, Exception):  # interrupted: end the running commands now
                        self._running.close()
                    pool.shutdown(cancel_futures=True)
                    raise
        finally:
            self._forget_what_read_changed_trees()
        if run.errors:
            raise BuildError(run.errors)
        return {path: made.path for path, made in ready.items()}

    def _forget_what_read_changed_trees(self) -> None:
        """Remove results of commands that ran while files of a tree changed, and raise ActionError.

        It is not known which version such a command read.
        """
        changed = set(self._trees.changed()) if self._ran else set()
        stale = {action: entry for action, entry in self._ran.items() if changed & set(action.trees)}
        for entry in stale.values():
            shutil.rmtree(entry, ignore_errors=True)
            self._record(entry).unlink(missing_ok=True)
        if stale:
            listed = ", ".join(sorted(changed))
            reason = f"read the tree {listed}, whose files changed while commands ran; build again when they stay"
            raise ActionError(next(iter(stale)), reason, "")

    def _record(self, entry: Path) -> Path:
        return self.cache / "failures" / f"{entry.name}.json"

    def missing(self, files: Sequence[RenderedFile], actions: Sequence[Action]) -> list[Action]:
        """Return the actions that a run would have to execute: those without a result, and their dependents.

        CacheError as in a run.
        """
        with usable(self.cache):
            self._prepare(files, actions)
        ready = {file.path: Made(Path(), hashlib.sha256(file.text.encode()).hexdigest()) for file in files}
        waiting = dict.fromkeys(actions)
        while True:
            known = {}
            for action in [action for action in waiting if all(path in ready for path in action.inputs)]:
                outputs = verified(self._entry(action, ready), action.outputs)
                if outputs is not None:
                    known[action] = outputs
            if not known:
                return list(waiting)
            for action, outputs in known.items():
                del waiting[action]
                ready.update(outputs)

    def materials(self, actions: Sequence[Action]) -> list[dict[str, Any]]:
        """Return resource descriptors of the toolchains and headers that actions of the last run read."""
        return self._trees.materials({tree for action in actions for tree in action.trees})

    def _prepare(self, files: Sequence[RenderedFile], actions: Sequence[Action]) -> None:
        self.cache = self.cache.resolve()
        for path in (*(file.path for file in files), *(path for action in actions for path in action.outputs)):
            checked_path(path, "output")
        if not self.shared:
            self.cache.parent.mkdir(parents=True, exist_ok=True)  # perhaps an output folder, for others to read
            make_private(self.cache)
        self._trees = MountedTrees(self.tree_roots, self.cache / "trees")  # files may have changed since an earlier run
        for tree in sorted({tree for action in actions for tree in action.trees}):
            self._trees.get(tree)

    def _make(self, action: Action, ready: Mapping[str, Made], slots: MemorySlots, patient: bool) -> _Result | None:
        """Return the result of an action; None if another process is making it and we are not ``patient``."""
        entry = self._entry(action, ready)
        outputs = verified(entry, action.outputs)
        if outputs is not None:
            touch(entry)
            return _Result(outputs, cost_of(entry), True)
        with entry_lock(self.cache / "locks" / entry.name, self.lock_timeout_s if patient else 0) as ours:
            if not ours and not patient:
                return None
            return self._make_locked(action, entry, ready, slots)

    def _make_locked(self, action: Action, entry: Path, ready: Mapping[str, Made], slots: MemorySlots) -> _Result:
        record = self._record(entry)
        for attempt in range(3):  # again only if the entry was damaged right after it was written
            outputs = verified(entry, action.outputs)
            if outputs is not None:
                touch(entry)
                return _Result(outputs, cost_of(entry), not attempt)
            failure = None if self.retry_failed else remembered(record, action, self.timeout_s)
            if failure is not None:
                raise failure
            with self._lock:
                self._ran[action] = entry
                self.progress(action.description)
                self.watcher.started(action)
            with sandbox_in(self.cache / "sandboxes") as (sandbox, alive):
                with slots.hold(action.memory_mb) as slot:
                    cost = self._execute(action, sandbox, ready, (slot, alive), record)
                keep(sandbox, action.outputs, entry, cost, self.shared)
            record.unlink(missing_ok=True)
        raise OSError(errno.EIO, "what was written cannot be read back; check the disk", str(entry))

    def _make_batch(
        self, batch: Batch, members: Sequence[Action], ready: Mapping[str, Made], slots: MemorySlots
    ) -> Mapping[Action, _Result | None]:
        """Results of those ``members`` of a batch that one command could make; the others are to be made singly."""
        with contextlib.ExitStack() as held:
            ours = {}
            for member in members:
                entry = self._entry(member, ready)
                locked = held.enter_context(entry_lock(self.cache / "locks" / entry.name, 0))
                if locked and verified(entry, member.outputs) is None and not self._failed_before(member, entry):
                    ours[member] = entry
            joined = batch.join(list(ours)) if len(ours) > 1 else None
            if joined is None:
                return {}
            with self._lock:
                self._ran.update(ours)
                for member in ours:
                    self.progress(member.description)
                    self.watcher.started(member)
            try:
                return self._make_joined(joined, ours, ready, slots)
            except (ActionError, UncuttableError) as error:
                with self._lock:
                    self.watcher.parted(list(ours), str(error).partition("\n")[0])
                return {}

    def _make_joined(
        self, joined: Joined, entries: Mapping[Action, Path], ready: Mapping[str, Made], slots: MemorySlots
    ) -> Mapping[Action, _Result | None]:
        file, command = joined.file, joined.action
        with sandbox_in(self.cache / "sandboxes") as (sandbox, alive):
            with slots.hold(command.memory_mb) as slot:
                inputs = {**ready, file.path: self._store_text(file.text)}
                whole = self._execute(command, sandbox, inputs, (slot, alive), None)
            parts = joined.cut((sandbox / command.outputs[0]).read_bytes())
            cost = replace(whole, cpu_s=round(whole.cpu_s / len(entries), 3))
            results: dict[Action, _Result | None] = {}
            for member, entry in entries.items():
                (output,) = member.outputs
                (sandbox / output).write_bytes(parts[output])
                keep(sandbox, member.outputs, entry, cost, self.shared)
                made = verified(entry, member.outputs)
                if made is not None:  # otherwise the entry was damaged right after it was written
                    results[member] = _Result(made, cost, False)
            return results

    def _failed_before(self, action: Action, entry: Path) -> bool:
        record = self._record(entry)
        return not self.retry_failed and remembered(record, action, self.timeout_s) is not None

    def _execute(
        self, action: Action, sandbox: Path, ready: Mapping[str, Made], kept: Collection[int], record: Path | None
    ) -> Cost:
        """Run a command; ``record`` is the file that remembers a failure."""
        for path in action.inputs:
            target = sandbox / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ready[path].path, target)
        for output in action.outputs:
            (sandbox / output).parent.mkdir(parents=True, exist_ok=True)
        for tree in action.trees:
            (sandbox / mount(tree)).symlink_to(self._trees.get(tree)[0])
        for cache in action.caches:
            folder = self.cache / "named" / cache
            folder.mkdir(parents=True, exist_ok=True)
            touch(folder)
            (sandbox / cache_mount(cache)).symlink_to(folder)
        try:
            code, printed, cost = run_command(action, sandbox, kept, self.timeout_s, self._running)
        except TimeLimitError as late:
            if record is not None:
                remember_time_limit(record, late)
            raise
        if code != 0:
            error = ActionError(action, f"failed with exit code {code}", printed)
            if record is not None:
                remember(record, error, code)
            raise error
        for output in action.outputs:
            if not (sandbox / output).is_file():
                raise ActionError(action, f"did not write {output}", printed)
        return cost

    def _entry(self, action: Action, ready: Mapping[str, Made]) -> Path:
        parts: dict[str, Any] = {
            "argv": action.argv,
            "env": sorted(action.env),
            "inputs": {path: ready[path].digest for path in action.inputs},
            "outputs": action.outputs,
            "trees": {tree: self._trees.get(tree)[1] for tree in action.trees},
        }
        if is_python(action.argv):
            parts["generator"] = files_digest()
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        entry = self.cache / "actions" / key
        self.check(entry)
        return entry

    def _store_text(self, text: str) -> Made:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        path = self.cache / "texts" / digest
        self.check(path)
        if path.exists() and path.read_bytes() == data:
            touch(path)
        else:
            write_atomically(path, data)
        return Made(path, digest)


class _Run:
    """One run of an executor: actions that wait for inputs, that are ready, that run, and that failed."""

    def __init__(
        self,
        executor: LocalExecutor,
        actions: Sequence[Action],
        ready: dict[str, Made],
        keep_going: bool,
        batches: Sequence[Batch],
    ) -> None:
        self.executor = executor
        self.ready = ready
        self.keep_going = keep_going
        self.errors: list[ActionError] = []
        memory_mb = executor.memory_mb
        self.memory_mb = memory_mb if memory_mb is not None else available_memory_mb()
        self.slots = MemorySlots(executor.cache / "memory", self.memory_mb)
        self.experience = Experience(executor.cache / "seconds")
        seconds = {action: self.experience.seconds(action) for action in actions}
        self.urgency = urgencies(list(seconds), seconds)
        self.waiting: dict[Action, set[str]] = {}
        self.users: dict[str, list[Action]] = {}
        self.able: list[tuple[bool, float, int, Action]] = []  # a heap
        self.pushed = itertools.count()
        self.running: dict[Future[Mapping[Action, _Result | None]], tuple[Sequence[Action], int]] = {}
        # Each member of a batch that was not tried, if the whole may fit.
        self.batches = {one: batch for batch in batches if batch.memory_mb <= self.memory_mb for one in batch.members}
        for action in seconds:
            self.waiting[action] = {path for path in action.inputs if path not in ready}
            for path in self.waiting[action]:
                self.users.setdefault(path, []).append(action)
            self._start_when_able(action)
        executor.watcher.planned(list(seconds), seconds)

    def until_done(self, pool: ThreadPoolExecutor) -> None:
        while self.waiting or self.able or self.running:
            self._start(pool)
            if not self.running:
                if self.errors:
                    return  # the rest depends on what could not be made
                missing = {path for paths in self.waiting.values() for path in paths}
                raise ValueError(f"no action makes {', '.join(sorted(missing))}")
            for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                actions, _ = self.running.pop(future)
                self._end(actions, future)

    def _start_when_able(self, action: Action) -> None:
        if not self.waiting[action]:
            del self.waiting[action]
            self._push(action, patient=False)

    def _push(self, action: Action, patient: bool) -> None:
        """Queue an action; those that another process is making come last, and are then waited for."""
        heapq.heappush(self.able, (patient, -self.urgency[action], next(self.pushed), action))

    def _start(self, pool: ThreadPoolExecutor) -> None:
        large = []
        while self.able and len(self.running) < self.executor.jobs:
            entry = heapq.heappop(self.able)
            patient, _, _, action = entry
            batch = self.batches.get(action)
            memory_mb = batch.memory_mb if batch else action.memory_mb
            if not self._fits(memory_mb):
                large.append(entry)
            elif batch:
                members = [action, *self._take(batch)]
                started = pool.submit(self.executor._make_batch, batch, members, dict(self.ready), self.slots)
                self.running[started] = (members, memory_mb)
            else:
                single = pool.submit(self._make, action, dict(self.ready), patient)
                self.running[single] = ([action], memory_mb)
        for entry in large:
            heapq.heappush(self.able, entry)

    def _make(self, action: Action, ready: Mapping[str, Made], patient: bool) -> Mapping[Action, _Result | None]:
        return {action: self.executor._make(action, ready, self.slots, patient)}

    def _take(self, batch: Batch) -> list[Action]:
        """Return the members of a batch that are ready to start; none of the batch is tried again as one."""
        for member in batch.members:
            del self.batches[member]
        taken = [entry for entry in self.able if entry[3] in batch.members]
        self.able = [entry for entry in self.able if entry[3] not in batch.members]
        heapq.heapify(self.able)
        return [entry[3] for entry in sorted(taken)]

    def _fits(self, memory_mb: int) -> bool:
        busy = sum(running_mb for _, running_mb in self.running.values())
        return not busy or busy + memory_mb <= self.memory_mb

    def _end(self, actions: Sequence[Action], future: Future[Mapping[Action, _Result | None]]) -> None:
        executor = self.executor
        try:
            results = future.result()
        except ActionError as error:
            with executor._lock:
                executor.watcher.failed(error)
            if not self.keep_going:
                raise
            self.errors.append(error)
            return
        for action in actions:
            result = results.get(action)
            if result is None:  # another process is making it, or a batch failed
                self._push(action, patient=action in results)
            else:
                self._made(action, result)

    def _made(self, action: Action, result: _Result) -> None:
        executor = self.executor
        self.ready.update(result.made)
        for path in result.made:
            for user in self.users.pop(path, ()):
                self.waiting[user].discard(path)
                self._start_when_able(user)
        if result.cost is not None:
            executor.costs[action.id] = result.cost
            if not result.cached:
                self.experience.record(action, result.cost.cpu_s)
        with executor._lock:
            executor.watcher.ended(action, result.cached)
