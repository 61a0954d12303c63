"""Work that is done once in a process and that no fork may cut in two.

Trials of torch's private interfaces run operators of torch, which initialise themselves when they are first used: a
child that is forked meanwhile waits for ever for the thread that did so in its parent. So a fork waits for the trial.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, Generic, TypeVar

_Found = TypeVar("_Found")
_LONGEST_S = 2.0  # a trial takes milliseconds; whatever it may wait for, a fork happens in the end

_lock = threading.RLock()
_held = threading.local()


class Undivided(Generic[_Found]):
    """A function whose results are kept, as by ``functools.cache``, and during which this process does not fork."""

    def __init__(self, function: Callable[..., _Found]) -> None:
        """As a decorator."""
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
