"""What a person without Pants' dynamic display sees of a long build: a line now and then, none for each kernel.

Pants prints a line for each process at the level INFO, of which a library has hundreds. Their level is therefore DEBUG,
and the rules that run them count here.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable

_logger = logging.getLogger(__name__)

SECONDS = 10.0  # between two lines of one library


class Progress:
    """How many kernels of a library are done.

    Lanes whose results Pants remembers never start, and their kernels count as done: what is left is what lanes have
    announced and not finished.
    """

    def __init__(self, what: str, kernels: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.kernels = kernels
        self._clock = clock
        self._lock = threading.Lock()  # rules run in any of Pants' threads
        self._left = 0
        self._next_line = clock() + SECONDS
        _logger.info(f"Building {what}: {_count(kernels)}")

    def start(self, kernels: int) -> None:
        """A lane has begun with so many kernels."""
        with self._lock:
            self._left += kernels

    def finish_one(self) -> None:
        """A kernel of a lane that has begun is done; says so if the last line is old enough."""
        with self._lock:
            self._left -= 1
            now = self._clock()
            if self._left <= 0 or now < self._next_line:
                return
            self._next_line = now + SECONDS
            done = max(self.kernels - self._left, 0)
        _logger.info(f"{self.what}: {done} of {_count(self.kernels)} done")


_builds: dict[str, Progress] = {}


def begin(what: str, kernels: int) -> None:
    """A library is being built. ``what`` names it in lines and for the other functions."""
    _builds[what] = Progress(what, kernels)


def of(what: str) -> Progress:
    """The progress of a library whose build has begun in this process."""
    return _builds[what]


def _count(kernels: int) -> str:
    return f"{kernels} kernel" if kernels == 1 else f"{kernels} kernels"
