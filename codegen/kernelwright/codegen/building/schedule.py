"""Order of a plan's actions: those on the critical path of the build come first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.codegen.actions import Action


def urgencies(actions: Sequence[Action], seconds: Mapping[Action, float]) -> dict[Action, float]:
    """Return the seconds from the start of each action to the end of all its dependents, if nothing else ran.

    Starting the ready action with the largest value is list scheduling by critical path (T. C. Hu, "Parallel sequencing
    and assembly line problems", 1961); for independent kernels it is longest first, at most 4/3 of the shortest
    schedule (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969).
    """
    makers = {output: action for action in actions for output in action.outputs}
    users: dict[Action, list[Action]] = {action: [] for action in actions}
    for action in actions:
        for path in action.inputs:
            if path in makers:
                users[makers[path]].append(action)
    to_end: dict[Action, float] = {}
    for action in reversed(_in_order(actions, makers)):
        to_end[action] = seconds[action] + max((to_end[user] for user in users[action] if user in to_end), default=0.0)
    return to_end


def _in_order(actions: Sequence[Action], makers: Mapping[str, Action]) -> list[Action]:
    """Return every action after those that make its inputs; a cycle, which no build can finish, in any order."""
    done: dict[Action, None] = {}
    seen: set[Action] = set()
    for first in actions:
        stack = [(first, False)]
        while stack:
            action, expanded = stack.pop()
            if expanded:
                done.setdefault(action)
            elif action not in seen:
                seen.add(action)
                stack.append((action, True))
                stack.extend((makers[path], False) for path in action.inputs if path in makers)
    return list(done)


class Experience:
    """Processor seconds that actions took in their last run, by action id, in files below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def seconds(self, action: Action) -> float:
        """Return the seconds that an action took, or the plan's estimate."""
        try:
            return float(self._path(action).read_text())
        except (OSError, ValueError):
            return action.seconds

    def record(self, action: Action, seconds: float) -> None:
        """Record the seconds of an action, as a hint: a torn or lost file changes only the order of a later build."""
        path = self._path(action)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{seconds:.3f}")

    def _path(self, action: Action) -> Path:
        return self.folder / hashlib.sha256(action.id.encode()).hexdigest()[:32]
