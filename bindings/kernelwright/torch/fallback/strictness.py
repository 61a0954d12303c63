"""Whether operators raise if no kernel serves a problem, instead of running torch's own operator."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwright.dispatch import ProblemError

ENVIRONMENT = "KERNELWRIGHT_STRICT"
_WORDS = {"": False, "0": False, "off": False, "false": False, "1": True, "on": True, "true": True}


def of_environment() -> bool:
    """The value of the environment variable ``KERNELWRIGHT_STRICT``. Raises ProblemError for an unknown word."""
    word = os.environ.get(ENVIRONMENT, "")
    if word.lower() not in _WORDS:
        raise ProblemError(f"{ENVIRONMENT} is {word!r}; allowed: on, off; set {ENVIRONMENT}=on for errors")
    return _WORDS[word.lower()]


class _Strictness:
    """The setting of the whole process: backward passes run in their own threads.

    :ivar on: whether to raise; read by every call that no kernel serves.
    """

    def __init__(self) -> None:
        self._always = of_environment()
        self._depth = 0
        self._lock = threading.Lock()
        self.on = self._always

    def add(self, depth: int) -> None:
        with self._lock:
            self._depth += depth
            self.on = self._always or self._depth > 0


STRICTNESS = _Strictness()


@contextmanager
def strict() -> Iterator[None]:
    """A region in which operators raise ``NoKernelError`` if no kernel serves a call; torch's own operators never run.

    It applies to all threads of the process until the last such region ends, including compiled functions and backward
    passes; the environment variable ``KERNELWRIGHT_STRICT=on`` makes it permanent.
    """
    STRICTNESS.add(1)
    try:
        yield
    finally:
        STRICTNESS.add(-1)
