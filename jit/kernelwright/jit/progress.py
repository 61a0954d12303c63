"""Progress of a build on stderr: a bar on terminals, lines elsewhere, nothing if nothing needs to be compiled."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.execute import ActionError, Watcher

_SECONDS_BETWEEN_LINES = 1.0


@contextmanager
def display(title: str, wanted: bool | None, stream: TextIO | None = None) -> Iterator[Watcher]:
    """A watcher that shows a run under ``title`` on ``stream`` (stderr), unless ``wanted`` is False.

    Lines appear at most once a second; with True, there is one per command.

    The bar needs the package rich, which omits colours if ``NO_COLOR`` is set; without rich, lines are shown.
    """
    out = stream if stream is not None else sys.stderr
    if wanted is False:
        yield Watcher()
        return
    between = 0.0 if wanted else _SECONDS_BETWEEN_LINES
    shown = _bar(title, out, between) if out.isatty() else Lines(title, out, between)
    try:
        yield shown
    finally:
        shown.close()


class Lines(Watcher):
    """One line when the first command starts, one every ``between`` seconds for those that ended, one at the end.

    A failure always gets a line.
    """

    def __init__(
        self, title: str, stream: TextIO, between: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.title = title
        self.stream = stream
        self.actions = 0
        self.done = 0
        self.made: set[Action] = set()
        self.seconds: Mapping[Action, float] = {}
        self.between = between
        self.clock = clock
        self.begin = self.shown = clock()

    def planned(self, actions: Sequence[Action], seconds: Mapping[Action, float]) -> None:
        """Remember the planned commands."""
        self.actions, self.seconds = len(actions), seconds

    def started(self, action: Action) -> None:
        """Show that a command runs."""
        if not self.made:
            total = sum(self.seconds.values())
            self._say(f"building {self.title}: {self.actions} steps, at most {total:.0f} processor seconds")
        self.made.add(action)

    def ended(self, action: Action, cached: bool) -> None:
        """Show that a command is done."""
        self.done += 1
        if not cached and self.clock() - self.shown >= self.between:
            self._say(f"[{self.done}/{self.actions}] {action.description}")

    def failed(self, error: ActionError) -> None:
        """Show that a command failed."""
        self.done += 1
        self._say(f"[{self.done}/{self.actions}] {error.action.description}: {error.reason}")

    def parted(self, actions: Sequence[Action], why: str) -> None:
        """Say that the commands are compiled one by one."""
        self._say(f"{len(actions)} kernels are compiled one by one: {why}")

    def close(self) -> None:
        """Say how long the build took, if anything was made."""
        if self.made:
            elapsed = self.clock() - self.begin
            self._say(f"{self.title}: {len(self.made)} of {self.actions} steps run in {elapsed:.1f} s")

    def _say(self, line: str) -> None:
        self.shown = self.clock()
        print(line, file=self.stream, flush=True)


class Bar(Watcher):
    """A bar that fills by estimated seconds, followed by the running commands."""

    def __init__(self, title: str, progress: Any) -> None:
        self.title = title
        self.progress = progress  # progress of rich
        self.task: Any = None
        self.seconds: Mapping[Action, float] = {}
        self.running: list[str] = []
        self.before = 0.0

    def planned(self, actions: Sequence[Action], seconds: Mapping[Action, float]) -> None:
        """Remember the planned commands."""
        self.seconds = seconds

    def started(self, action: Action) -> None:
        """Show that a command runs."""
        if self.task is None:
            self.progress.start()
            self.task = self.progress.add_task(
                self.title, total=sum(self.seconds.values()), completed=self.before, running=""
            )
        self.running.append(action.description)
        self._update(0)

    def ended(self, action: Action, cached: bool) -> None:
        """Show that a command is done."""
        self._end(action)

    def failed(self, error: ActionError) -> None:
        """Show that a command failed."""
        self._end(error.action)

    def parted(self, actions: Sequence[Action], why: str) -> None:
        """Remove commands that are no longer running."""
        for action in actions:
            self.running.remove(action.description)

    def close(self) -> None:
        """Remove the bar."""
        if self.task is not None:
            self.progress.stop()

    def _end(self, action: Action) -> None:
        if action.description in self.running:
            self.running.remove(action.description)
        if self.task is None:
            self.before += self.seconds[action]
        else:
            self._update(self.seconds[action])

    def _update(self, advance: float) -> None:
        running = self.running[-1] if self.running else ""
        self.progress.update(self.task, advance=advance, running=running, refresh=True)


def _bar(title: str, stream: TextIO, between: float) -> Lines | Bar:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        return Lines(title, stream, between)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[running]}", markup=False),
    )
    return Bar(title, Progress(*columns, console=Console(file=stream), transient=True))
