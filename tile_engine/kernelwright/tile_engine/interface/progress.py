"""One line on standard error that shows a run's progress and expected end."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from kernelwright.tile_engine.bench import Progress


class ProgressLine:
    """Rewrites its line on a terminal; elsewhere prints one line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._start = time.monotonic()
        self._said = self._start
        self._terminal = self._stream.isatty()

    def __call__(self, progress: Progress) -> None:
        """Show the progress of the run."""
        now = time.monotonic()
        if not self._terminal and now - self._said < 10 and progress.done < progress.total:
            return
        self._said = now
        left = (now - self._start) / progress.done * (progress.total - progress.done)
        kernel, status = progress.row["kernel"], progress.row["status"]
        text = f"{progress.done}/{progress.total}, {_duration(left)} left: {kernel} {status}"
        end = "\n" if not self._terminal or progress.done == progress.total else ""
        print(f"\r\x1b[K{text[:100]}" if self._terminal else text, end=end, file=self._stream, flush=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
