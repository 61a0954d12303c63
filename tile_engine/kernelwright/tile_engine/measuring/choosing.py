"""Ask for the dispatcher's choices through a child process, which loads the library in our place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kernelwright import dispatch
from kernelwright.codegen.supervision.output import Lines
from kernelwright.codegen.supervision.supervised import Supervised
from kernelwright.tile_engine.measuring.isolation import (
    CRASHED,
    PREPARING_S,
    Child,
    Trouble,
    next_line,
    parsed,
    request,
)
from kernelwright.tile_engine.operation import Record

PLANNER = (sys.executable, "-m", "kernelwright.tile_engine.measuring.planner")


class LibraryHangsError(RuntimeError):
    """The library hangs or crashes when it is loaded: none of its kernels can be measured."""


@dataclass(frozen=True)
class Choice:
    """The dispatcher's choice for a problem.

    :ivar selected: identities of the kernels of its plan, empty if no kernel serves the problem.
    :ivar ranks: rank of each usable kernel in its stage, from 1, by identity.
    """

    selected: Collection[str] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)


def choices(child: Child, records: Mapping[int, Record], warn: Callable[[str], None]) -> dict[int, Choice]:
    """The choice for each problem, by number; ``child`` states the library, device and time limit.

    A problem whose plan hangs or crashes has none: ``warn`` is told, and its kernels, which plan it in separate
    processes, get rows that say so. Raises LibraryHangsError, and the errors of the child: a KernelwrightError of the
    library, ValueError for a record.
    """
    planner = replace(child, command=PLANNER)
    left, chosen = dict(records), dict[int, Choice]()
    while left:
        trouble = _of_one_process(planner, left, chosen)
        if trouble is not None:
            index = next(iter(left))
            warn(f"problem {index} has no plan: {trouble.status}, {trouble.reason}; no kernel is marked as selected")
            chosen[index] = Choice()
            del left[index]
    return chosen


def _of_one_process(child: Child, left: dict[int, Record], chosen: dict[int, Choice]) -> Trouble | None:
    """Move problems from ``left`` to ``chosen``; returns why the process did not reach the last one."""
    lines = Lines()
    asked = {**child.asked, "records": [[index, dict(record)] for index, record in left.items()]}
    with request(asked) as file, Supervised(child.command, stdin=file, out=lines) as process:
        event = _event(next_line(process, lines, child.kernel_timeout_s + PREPARING_S), lambda said: "loaded" in said)
        if isinstance(event, Trouble):
            raise LibraryHangsError(f"{child.library} cannot be loaded: {event.status}, {event.reason}")
        while left:
            event = _event(next_line(process, lines, child.kernel_timeout_s), lambda said: _is_choice(said, left))
            if isinstance(event, Trouble):
                return event
            chosen[event["problem"]] = Choice(frozenset(event["selected"]), event["ranks"])
            del left[event["problem"]]
    return None


def _event(line: bytes | Trouble, expected: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | Trouble:
    """The next event of the child; raises the error that it reports."""
    if isinstance(line, Trouble):
        return line
    event = parsed(line)
    if event is not None and "error" in event:
        kind = getattr(dispatch, str(event["error"]), None)
        known = isinstance(kind, type) and issubclass(kind, dispatch.KernelwrightError)
        raise (kind if known else ValueError)(str(event.get("text")))  # type: ignore[misc]
    if event is None or not expected(event):
        return Trouble(CRASHED, "what it wrote to the pipe of its process is no plan")
    return event


def _is_choice(event: dict[str, Any], left: Collection[int]) -> bool:
    index, selected, ranks = (event.get(key) for key in ("problem", "selected", "ranks"))
    texts = isinstance(selected, list) and all(isinstance(one, str) for one in selected)
    return texts and isinstance(index, int) and index in left and isinstance(ranks, dict)
