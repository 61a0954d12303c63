"""Runs one command of a plan under supervision: nothing that it started outlives it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.failures import ActionError, TimeLimitError
from kernelwright.codegen.building.store import Cost
from kernelwright.codegen.supervision.supervised import Supervised
from kernelwright.codegen.toolchains.python import located

TIMEOUT_S = 1800.0
"""Default time limit of a command in seconds: ten times what the slowest kernel takes."""


class RunningCommands:
    """The commands running now, which :meth:`close` ends."""

    def __init__(self) -> None:
        self._running: set[Supervised] = set()
        self._closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """End every running command, and each that is about to start."""
        with self._lock:
            self._closed = True
            for command in self._running:
                command.end()

    @contextmanager
    def member(self, command: Supervised) -> Iterator[None]:
        """Let :meth:`close` end the command within the block."""
        with self._lock:
            self._running.add(command)
            if self._closed:
                command.end()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(command)


def run_command(
    action: Action, sandbox: Path, kept: Collection[int], timeout_s: float, running: RunningCommands
) -> tuple[int, str, Cost]:
    """Run a command; returns its exit code, its output and its cost.

    ActionError if it cannot be started; TimeLimitError after ``timeout_s`` seconds. Afterwards nothing that it started
    still runs, in whatever session; ActionError if that cannot be ensured. A command that outlives us keeps the file
    descriptors ``kept``: its memory stays reserved, its folder stays.
    """
    begin = time.monotonic()
    try:
        command = Supervised(located(action.argv), cwd=sandbox, env=dict(action.env), kept=kept)
    except OSError as error:
        raise ActionError(action, f"cannot be started: {error}", "") from None
    with command:
        with running.member(command):
            late = command.wait(timeout_s) is None
        end = command.close()
    printed = f"{command.out}{command.err}"
    if late and end.returncode == -signal.SIGKILL:
        raise TimeLimitError(action, timeout_s, printed)
    if end.left:
        left = ", ".join(map(str, end.left))
        raise ActionError(action, f"cannot be ended: processes {left} still run; end them, then build again", printed)
    return end.returncode, printed, Cost(end.cpu_s, round(time.monotonic() - begin, 3), -(-end.memory_kb // 1024))


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt this program like Ctrl-C, so that a run ends its commands first.

    The commands run in sessions of their own, so a signal to our process group does not reach them.
    """

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, interrupt)
