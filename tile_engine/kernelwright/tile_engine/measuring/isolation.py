"""Run batches of kernels in child processes, and attribute a hang or a crash to its kernel."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelwright.codegen.supervision.output import Lines
from kernelwright.codegen.supervision.supervised import End, Supervised
from kernelwright.tile_engine.measuring.measure import Report
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Record

TIMED_OUT, CRASHED = "timeout", "crashed"
PREPARING_S = 120.0
"""Seconds before a process's first line: imports and operands are charged to no kernel."""
_LAST_WORDS = 2000  # characters of a child's standard error to include in a report
_LINE_BYTES, _LINES = 1 << 20, 10_000  # a report has about 1 KB, and each is read before the next


@dataclass(frozen=True)
class Child:
    """How a child is started, and the settings of all its kernels.

    :ivar kernel_timeout_s: seconds allowed to a kernel between two events.
    """

    library: Path
    device: str
    operation: str
    settings: Settings
    kernel_timeout_s: float
    command: Sequence[str] = (sys.executable, "-m", "kernelwright.tile_engine.measuring.worker")

    def reports(self, record: Record, kernels: Sequence[str]) -> Iterator[Report]:
        """Yield one report per kernel, whatever happens to the processes that measure it.

        After a hang or a crash, the kernels without a report go to a new process, without the culprit; likewise after a
        process that ended by itself having reported something.
        """
        left = list(kernels)
        while left:
            for event in self._events(record, list(left)):
                left.remove(event["kernel"])
                yield event

    def _events(self, record: Record, kernels: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Reports of one process, at least one; the last may be about the kernel that ended it."""
        lines = Lines(_LINE_BYTES, _LINES)
        waiting = list(kernels)
        current: str | None = kernels[0]
        limit_s = self.kernel_timeout_s + PREPARING_S
        with (
            request(self._asked(record, kernels)) as file,
            Supervised(self.command, stdin=file, out=lines) as process,
        ):
            while waiting:
                event = _next_event(process, lines, waiting, limit_s)
                if isinstance(event, Trouble):
                    if not event.ended_by_itself or current:
                        yield self._report(current or waiting[0], event.status, event.reason)
                    return
                limit_s = self.kernel_timeout_s
                if "begin" in event:
                    current = event["begin"]
                else:
                    waiting.remove(event["kernel"])
                    current = None if event["kernel"] == current else current
                    yield event

    @property
    def asked(self) -> Mapping[str, Any]:
        """Contents of every request."""
        return {"library": str(self.library), "device": self.device, "operation": self.operation}

    def _asked(self, record: Record, kernels: Sequence[str]) -> Mapping[str, Any]:
        rest = {"record": dict(record), "kernels": list(kernels), "settings": self.settings.as_json()}
        return {**self.asked, **rest}

    @staticmethod
    def _report(kernel: str, status: str, reason: str) -> Report:
        return {"kernel": kernel, "status": status, "reason": reason, "error": None, "non_zero": None}


@dataclass(frozen=True)
class Trouble:
    """Why no further event comes."""

    status: str
    reason: str
    ended_by_itself: bool = False


@contextmanager
def request(asked: Mapping[str, Any]) -> Iterator[IO[str]]:
    """A file to read from: a pipe would block us on a process that does not read."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        json.dump(asked, file)
        file.seek(0)
        yield file


def _next_event(
    process: Supervised, lines: Lines, waiting: Collection[str], limit_s: float
) -> dict[str, Any] | Trouble:
    """The next event of the process within ``limit_s`` seconds, about a kernel in ``waiting``."""
    line = next_line(process, lines, limit_s)
    if isinstance(line, Trouble):
        return line
    event = _event(line)
    if event is None or event.get("begin", event.get("kernel")) not in waiting:
        return Trouble(CRASHED, "what it wrote to the pipe of its process is no report")
    return event


def next_line(process: Supervised, lines: Lines, limit_s: float) -> bytes | Trouble:
    """The next line of a process, or why none came within ``limit_s`` seconds."""
    deadline = time.monotonic() + limit_s
    while (line := lines.next()) is None and not lines.overflow:
        if process.ended is not None:
            return _end(process, process.ended)
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            end = process.close()
            return Trouble(TIMED_OUT, f"no answer in {limit_s:g} s{_left(end)}")
        process.step(left_s)
    return b"" if line is None else line


def parsed(line: bytes) -> dict[str, Any] | None:
    """The object that a child wrote; None for any other line."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _event(line: bytes) -> dict[str, Any] | None:
    """A line in the worker's format; None for any other."""
    event = parsed(line)
    if event is None or not isinstance(event.get("begin", event.get("kernel")), str):
        return None
    return event if "begin" in event or isinstance(event.get("status"), str) else None


def _end(process: Supervised, end: End) -> Trouble:
    """How the process ended, with the end of its standard error."""
    code = end.returncode
    ended = f"signal {_name(-code)}" if code < 0 else f"exit code {code}"
    words = str(process.err)[-_LAST_WORDS:].strip()
    return Trouble(CRASHED, (f"{ended}: {words}" if words else ended) + _left(end), code == 0)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _left(end: End) -> str:
    return f"; processes {', '.join(map(str, end.left))} could not be ended" if end.left else ""
