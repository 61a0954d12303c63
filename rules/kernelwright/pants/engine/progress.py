"""Progress of a long build without Pants' dynamic display: a line now and then, not one for each kernel.

Pants prints a line for each process at the level INFO, of which a library has hundreds. Their level is therefore DEBUG,
and the rules that run them report here. A thread prints how many kernels are done, so that a kernel that compiles for
minutes does not silence the build.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Callable, ContextManager, Iterable, Iterator, Optional

from kernelwright.pants.compat import rule
from pants.engine.rules import collect_rules
from pants.engine.streaming_workunit_handler import (
    WorkunitsCallbackFactory,
    WorkunitsCallbackFactoryRequest,
    thread_locals_get_for_current_thread,
    thread_locals_set_for_current_thread,
)
from pants.engine.unions import UnionRule

_logger = logging.getLogger(__name__)

SECONDS = 10.0  # between two lines of one library
PAUSE = 3.0  # idle seconds after which a run counts as a new build of the library: pauses between its rules are shorter


@dataclass(frozen=True)
class Part:
    """The subject of an action: a library, by its name for people, and one of its kernels, or None for the whole."""

    library: str
    kernel: Optional[str] = None


class Progress:
    """Counts the finished kernels of a library, as the rules that build it report through ``at_work``.

    Rules whose results Pants remembers never start, and their kernels count as done: remaining kernels are those that
    rules have started and not finished. After a change of a source, Pants runs the rules of actions before those of
    kernels and of the library, so whichever starts first announces that the library is being built: in each run, and
    again in a run with ``--loop``. ``kernels`` is the count that the library's rule stated last.
    """

    def __init__(
        self,
        library: str,
        clock: Callable[[], float] = time.monotonic,
        watch: Optional[Callable[[Progress], None]] = None,
    ) -> None:
        self.kernels = 0
        self._library = library
        self._clock = clock
        self._watch = watch or _start_thread
        # Rules run in any of Pants' threads. An abandoned rule leaves at_work wherever Python destroys it, which may be
        # in a thread that holds the lock.
        self._lock = threading.RLock()
        self._rules = 0
        self._left: Counter[str] = Counter()  # unfinished kernels, with the number of rules that hold each
        self._idle_since = -float("inf")
        self._run = -1  # the last run that built it
        self._next_line = 0.0
        self._all_told = False  # that all kernels are done: the rest is to link them, perhaps behind other processes
        self._watched = False
        self._console = thread_locals_get_for_current_thread()

    @contextlib.contextmanager
    def at_work(self, *kernels: str) -> Iterator[Callable[[str], None]]:
        """Mark that a rule starts work on these kernels; the yielded function is called after each of them."""
        left = set(kernels)

        def done(kernel: str) -> None:
            with self._lock:
                left.remove(kernel)
                self._drop(kernel)

        self._begin(left)
        try:
            yield done
        finally:  # also for a rule that failed or was abandoned
            with self._lock:
                for kernel in left:
                    self._drop(kernel)
                self._rules -= 1
                self._idle_since = self._clock()

    def _drop(self, kernel: str) -> None:
        self._left[kernel] -= 1
        if not self._left[kernel]:
            del self._left[kernel]

    def _begin(self, kernels: set[str]) -> None:
        with self._lock:
            now = self._clock()
            begins = self._run != _runs or (self._rules == 0 and now - self._idle_since >= PAUSE)
            self._run = _runs
            if begins:
                self._next_line = now + SECONDS
                self._all_told = False
            self._rules += 1
            self._left.update(kernels)
            self._console = thread_locals_get_for_current_thread()  # of the run that is building the library now
            starts, self._watched = not self._watched, True
        if begins:
            _logger.info(f"Building {self._library}: {_count(self.kernels)}")
        if starts:
            self._watch(self)

    def tick(self) -> Optional[float]:
        """Log how many kernels are done if the last line is old enough.

        Returns the seconds until the next call, None if nothing is left to wait for.
        """
        with self._lock:
            if self._rules == 0:
                self._watched = False
                return None
            now = self._clock()
            if now < self._next_line:
                return self._next_line - now
            self._next_line = now + SECONDS
            console = self._console
            done = max(self.kernels - len(self._left), 0)
            told, self._all_told = self._all_told, done == self.kernels
        if not (told and done == self.kernels):
            thread_locals_set_for_current_thread(console)  # otherwise the line would go to the daemon's log
            _logger.info(f"{self._library}: {done} of {_count(self.kernels)} done")
        return SECONDS


_runs = 0  # begun by this process: a daemon begins many
_builds: dict[str, Progress] = {}
_lock = threading.RLock()


def of(library: str) -> Progress:
    """Return the progress of a library, which all of its rules share."""
    with _lock:
        if library not in _builds:
            _builds[library] = Progress(library)
        return _builds[library]


def at_work(part: Optional[Part]) -> ContextManager[object]:
    """Mark that an action works on a part of a library; without a part, nothing is reported."""
    if part is None:
        return contextlib.nullcontext()
    return of(part.library).at_work(*([] if part.kernel is None else [part.kernel]))


def _start_thread(progress: Progress) -> None:
    threading.Thread(target=_tick_until_done, args=(progress,), name="kernelwright-progress", daemon=True).start()


def _tick_until_done(progress: Progress) -> None:
    seconds = progress.tick()
    while seconds is not None:
        time.sleep(seconds)
        seconds = progress.tick()


def begin_run() -> None:
    """Note that Pants begins a run."""
    global _runs
    _runs += 1


class RunsRequest(WorkunitsCallbackFactoryRequest):
    """Requests the callback that Pants calls when a run begins."""


@rule()
async def tell_runs(_: RunsRequest) -> WorkunitsCallbackFactory:
    """Return a factory that Pants remembers and calls in each run; without a callback it starts no thread."""
    return WorkunitsCallbackFactory(begin_run)


def rules() -> Iterable[object]:
    return [*collect_rules(), UnionRule(WorkunitsCallbackFactoryRequest, RunsRequest)]


def _count(kernels: int) -> str:
    return f"{kernels} kernel" if kernels == 1 else f"{kernels} kernels"
