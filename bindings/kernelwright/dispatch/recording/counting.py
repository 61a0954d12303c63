"""Interface between plans and a recorder. Without a recorder launches cost nothing extra: plans keep their calls."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Counter(Protocol):
    """Counts launches."""

    def counted(self, problem: Any, arch: str, launch: Callable[[], Any]) -> Callable[[], Any]:
        """Wrap ``launch`` to count each call; for one thread at a time."""

    def refused(self, problem: Any, arch: str) -> None:
        """Count a problem that no kernel serves."""


class Recorded(Protocol):
    """An object that keeps launch calls for threads: a plan."""

    def forget_calls(self) -> None:
        """Recreate the calls of all threads at their next launch."""


class _Active:
    counter: Counter | None = None


class _Thread(threading.local):
    refused: tuple[Any, str] = (None, "")


_thread = _Thread()
_plans: weakref.WeakSet[Any] = weakref.WeakSet()


def active() -> Counter | None:
    """The active counter, if any."""
    return _Active.counter


def refused(problem: Any, arch: str) -> None:
    """Tell the counter, and :func:`last_refused`, that no kernel serves a problem."""
    _thread.refused = problem, arch
    if _Active.counter is not None:
        _Active.counter.refused(problem, arch)


def last_refused() -> tuple[Any, str]:
    """The problem that this thread was last refused, and its libraries' architecture; once for each refusal."""
    refusal, _thread.refused = _thread.refused, (None, "")
    return refusal


def switch(counter: Counter | None) -> None:
    """Let ``counter`` count from now on, or nobody. Launches already under way finish as they began."""
    _Active.counter = counter
    for plan in _living():
        plan.forget_calls()


def note(plan: Recorded) -> None:
    """Remember a plan for as long as it lives."""
    _plans.add(plan)


def _living() -> list[Recorded]:
    while True:
        try:
            return list(_plans)
        except RuntimeError:  # another thread has made a plan
            continue
