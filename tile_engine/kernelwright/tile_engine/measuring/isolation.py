"""Runs batches of kernels in child processes, and says which kernel a hang or a crash belongs to."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from kernelwright.tile_engine.measuring.measure import Report
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Record

TIMED_OUT, CRASHED = "timeout", "crashed"
_PREPARING_S = 120.0  # of a process before its first line: imports and operands belong to no kernel
_LAST_WORDS = 2000  # characters of a child's standard error that a report may have


@dataclass(frozen=True)
class Child:
    """How a child is started, and what holds for all of its kernels.

    :ivar kernel_timeout_s: seconds that a kernel may take from one event to the next.
    """

    library: Path
    device: str
    operation: str
    settings: Settings
    kernel_timeout_s: float
    command: Sequence[str] = (sys.executable, "-m", "kernelwright.tile_engine.measuring.worker")

    def reports(self, record: Record, kernels: Sequence[str]) -> Iterator[Report]:
        """One report for each kernel, whatever happens to the processes that measure it.

        After a hang or a crash the kernels that have no report yet go to a new process, without the culprit; so they do
        after a process that ended by itself when it had reported something.
        """
        left = list(kernels)
        while left:
            for event in self._events(record, list(left)):
                left.remove(event["kernel"])
                yield event

    def _events(self, record: Record, kernels: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Reports of one process, at least one; the last may be of the kernel that ended it."""
        with _Process(self.command, self._request(record, kernels)) as process:
            waiting = dict.fromkeys(kernels)
            current: str | None = kernels[0]
            limit_s = self.kernel_timeout_s + _PREPARING_S
            while waiting:
                line = process.line(limit_s)
                if not line:
                    if line is None or current or not process.ended_by_itself():
                        culprit = current or next(iter(waiting))
                        why = (
                            (TIMED_OUT, f"no answer in {limit_s:g} s")
                            if line is None
                            else (CRASHED, process.last_words())
                        )
                        yield self._report(culprit, *why)
                    return
                event = json.loads(line)
                limit_s = self.kernel_timeout_s
                if "begin" in event:
                    current = event["begin"]
                else:
                    waiting.pop(event["kernel"])
                    current = None if event["kernel"] == current else current
                    yield event

    def _request(self, record: Record, kernels: Sequence[str]) -> Mapping[str, Any]:
        return {
            **{"library": str(self.library), "device": self.device, "operation": self.operation},
            **{"record": dict(record), "kernels": list(kernels), "settings": self.settings.as_json()},
        }

    def _hung(self, kernel: str, limit_s: float) -> Report:
        return self._report(kernel, TIMED_OUT, f"no answer in {limit_s:g} s")

    def _crashed(self, kernel: str, process: _Process) -> Report:
        return self._report(kernel, CRASHED, process.last_words())

    @staticmethod
    def _report(kernel: str, status: str, reason: str) -> Report:
        return {"kernel": kernel, "status": status, "reason": reason, "error": None, "non_zero": None}


class _Process:
    """A child with its lines in a queue, so that waiting for one can end. It is killed with its children at the end."""

    def __init__(self, command: Sequence[str], request: Mapping[str, Any]) -> None:
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._words: list[str] = []
        assert self._child.stdin and self._child.stdout and self._child.stderr
        self._readers = [
            threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True),
            threading.Thread(target=self._listen, args=(self._child.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            self._child.stdin.write(json.dumps(request))
            self._child.stdin.close()
        except BrokenPipeError:
            pass  # it ended at once: its last words say why

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *error: object) -> None:
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for reader in self._readers:
            reader.join()

    def line(self, timeout_s: float) -> str | None:
        """The next line; empty when there is none, None after ``timeout_s`` without one."""
        try:
            return self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def ended_by_itself(self) -> bool:
        """Whether its exit code is 0."""
        return self._child.wait() == 0

    def last_words(self) -> str:
        """How the process ended, and the end of its standard error."""
        code = self._child.wait()
        self._readers[1].join()
        ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        words = "".join(self._words)[-_LAST_WORDS:].strip()
        return f"{ended}: {words}" if words else ended

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put("")

    def _listen(self, stream: TextIO) -> None:
        for line in stream:
            self._words.append(line)
            del self._words[:-200]
