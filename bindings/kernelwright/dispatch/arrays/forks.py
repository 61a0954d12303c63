"""Work that a process does once and that no fork may interrupt.

Trials of torch's private interfaces run torch operators, which initialise themselves on first use: a child forked in
the meantime waits forever for its parent's initialising thread. So a fork waits until the trial ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, Generic, TypeVar

_Found = TypeVar("_Found")
_LONGEST_S = 2.0  # a trial takes milliseconds; no matter what it waits for, the fork goes ahead after this long

_lock = threading.RLock()
_held = threading.local()


class Undivided(Generic[_Found]):
    """A function whose results are cached, as by ``functools.cache``, and during which this process does not fork."""

    def __init__(self, function: Callable[..., _Found]) -> None:
        """Wrap a function; used as a decorator."""
        update_wrapper(self, function)
        self._function = cache(function)
        self.cache_clear, self.cache_info = self._function.cache_clear, self._function.cache_info

    def __call__(self, *arguments: Any) -> _Found:
        """The function's result."""
        with _lock:
            return self._function(*arguments)


def _before() -> None:
    _held.lock = _lock if _lock.acquire(timeout=_LONGEST_S) else None


def _after_in_parent() -> None:
    if _held.lock is not None:
        _held.lock.release()


def _after_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # its owner may be a thread of the parent


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
