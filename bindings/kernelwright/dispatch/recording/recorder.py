"""Count launches of this process and add them to a trace file."""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelwright.dispatch.core.errors import KernelwrightError
from kernelwright.dispatch.recording import counting
from kernelwright.dispatch.recording.trace import add, entry

PERIOD_S = 2.0
"""Seconds between two additions to the file, so that a killed process loses little."""
ENVIRONMENT = "KERNELWRIGHT_RECORD"


class _Cell:
    """Number of launches of a problem by one call. Only the call's thread writes ``count``."""

    __slots__ = ("arch", "call", "count", "problem", "unserved", "written")

    def __init__(self, problem: Any, arch: str) -> None:
        self.problem, self.arch = problem, arch
        self.count = self.unserved = self.written = 0
        self.call: weakref.ref[Any] | None = None


class Recording:
    """The result of ``record``: a context manager that ends the recording."""

    def __init__(self, path: Path) -> None:
        """Begin. Raises OSError if the file cannot be written; ValueError if it exists and is not a trace."""
        self.path = path.absolute()
        self._cells: list[_Cell] = []
        self._lock = threading.Lock()
        self._due = time.monotonic() + PERIOD_S
        self._process = os.getpid()
        self._failed = False
        add(self.path, [])

    def counted(self, problem: Any, arch: str, launch: Callable[[], Any]) -> Callable[[], Any]:
        """Wrap ``launch`` to count each call; for one thread at a time. Called by plans."""
        cell = _Cell(problem, arch)

        def call() -> Any:
            result = launch()
            cell.count += 1
            if time.monotonic() > self._due:
                self._write_in_time()
            return result

        cell.call = weakref.ref(call)
        self._cells.append(cell)
        return call

    def refused(self, problem: Any, arch: str) -> None:
        """Count a problem that no kernel serves. Called by dispatchers."""
        cell = _Cell(problem, arch)
        cell.unserved = 1
        self._cells.append(cell)

    def flush(self) -> None:
        """Add the counts since the last flush to the file. OSError or ValueError if that fails."""
        with self._lock:
            self._due = time.monotonic() + PERIOD_S
            cells = list(self._cells)
            changed = [(cell, cell.count) for cell in cells if cell.count > cell.written or cell.unserved]
            if changed:
                add(self.path, [entry(one.problem, one.arch, n - one.written, one.unserved) for one, n in changed])
            for cell, count in changed:
                cell.written, cell.unserved = count, 0
            for cell in cells:
                if (cell.call is None or cell.call() is None) and cell.count == cell.written and not cell.unserved:
                    self._cells.remove(cell)

    def close(self) -> None:
        """End the recording and add its counts to the file."""
        if counting.active() is self:
            counting.switch(None)
        atexit.unregister(self.close)
        self.flush()

    def __enter__(self) -> Recording:
        """Return the recording itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the recording."""
        self.close()

    def _write_in_time(self) -> None:
        """Call :meth:`flush`, but only warn on failure: a full disk must not end the program."""
        if self._failed:
            return
        try:
            self.flush()
        except (OSError, ValueError) as error:
            self._failed = True
            warnings.warn(f"problems are no longer recorded in {self.path}: {error}", RuntimeWarning, stacklevel=2)

    def after_fork(self) -> None:
        """In a child: discard the parent's counts."""
        self._lock = threading.Lock()
        for cell in self._cells:
            cell.written, cell.unserved = cell.count, 0


def record(path: str | os.PathLike[str]) -> Recording:
    """Write the problems of this process from now on, with counts, to a trace file; a context manager.

    Plan launches are counted by problem and architecture, whether from calls with arrays, plans or torch operators; so
    are problems that no kernel serves. Calls of plans bound earlier are not seen. Counts are added to those in the file
    every two seconds and at the end; other processes and forked children may add to it concurrently. The environment
    variable ``KERNELWRIGHT_RECORD=path`` records from the first dispatcher to the end of the process.
    ``kernel_set(problems = "trace.json")`` makes a library of kernels that serve the problems best.

    :raises KernelwrightError: if the process is already recording.
    :raises OSError: if the file cannot be written.
    :raises ValueError: if it exists and is not a trace.
    """
    current = counting.active()
    if current is not None:
        raise KernelwrightError(f"problems are recorded in {getattr(current, 'path', '?')}; close that recording first")
    made = Recording(Path(path))
    counting.switch(made)
    atexit.register(made.close)
    from multiprocessing import util  # programs that record nothing need not load it

    util.register_after_fork(made, _end_with_process)
    return made


def _end_with_process(recording: Recording) -> None:
    """In a child of multiprocessing, which runs no atexit functions."""
    from multiprocessing import util

    util.Finalize(None, recording.flush, exitpriority=0)


def record_if_asked() -> None:
    """Begin the recording that the environment requests, once."""
    path = os.environ.get(ENVIRONMENT)
    if path and not _asked:
        _asked.append(path)
        if counting.active() is None:
            record(path)


_asked: list[str] = []


def _after_fork() -> None:
    current = counting.active()
    if isinstance(current, Recording):
        current.after_fork()


os.register_at_fork(after_in_child=_after_fork)
