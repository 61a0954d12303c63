"""Running one command of a plan: in a process group of its own, which ends as a whole if it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.failures import ActionError, TimeLimitError
from kernelwright.codegen.building.store import Cost

TIMEOUT_S = 1800.0
"""Seconds that a command may take unless somebody says otherwise: ten times what the slowest kernel takes."""


class Groups:
    """The process groups of the commands that run now, by their leaders."""

    def __init__(self) -> None:
        self._leaders: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """End every group, and each that is about to start."""
        with self._lock:
            self._closed = True
            for leader in self._leaders:
                _kill(leader)

    @contextmanager
    def member(self, leader: int, timeout_s: float) -> Iterator[threading.Event]:
        """Ends the group after ``timeout_s`` seconds, which sets the event, unless the block is left before.

        The leader must not be reaped within the block: until then its process id cannot be reused.
        """
        late = threading.Event()

        def end() -> None:
            with self._lock:
                if leader in self._leaders:
                    late.set()
                    _kill(leader)

        with self._lock:
            self._leaders.add(leader)
            if self._closed:
                _kill(leader)
        timer = threading.Timer(min(timeout_s, threading.TIMEOUT_MAX), end)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            with self._lock:
                self._leaders.discard(leader)


def run_command(
    action: Action, sandbox: Path, kept: Collection[int], timeout_s: float, groups: Groups
) -> tuple[int, str, Cost]:
    """Exit code, what it printed and what it took.

    ActionError if it cannot be started; TimeLimitError after ``timeout_s`` seconds, when all that it started has been
    ended with it. A command that outlives us keeps the file descriptors ``kept``: its memory stays reserved, its folder
    stays.
    """
    begin = time.monotonic()
    with open(sandbox / "__stdout", "w+b") as out, open(sandbox / "__stderr", "w+b") as err:
        try:
            process = subprocess.Popen(
                action.argv,
                cwd=sandbox,
                env=dict(action.env),
                pass_fds=tuple(kept),
                process_group=0,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        except OSError as error:
            raise ActionError(action, f"cannot be started: {error}", "") from None
        with groups.member(process.pid, timeout_s) as late:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed = ""
        for stream in (out, err):
            stream.seek(0)
            printed += stream.read().decode(errors="replace")
    if late.is_set() and process.returncode == -signal.SIGKILL:
        raise TimeLimitError(action, timeout_s, printed)
    cost = Cost(
        round(usage.ru_utime + usage.ru_stime, 3), round(time.monotonic() - begin, 3), -(-usage.ru_maxrss // 1024)
    )
    return process.returncode, printed, cost


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt this program as Ctrl-C does, so that a run ends its commands first.

    The commands run in process groups of their own, so a signal to our group does not reach them.
    """

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, interrupt)


def _kill(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
