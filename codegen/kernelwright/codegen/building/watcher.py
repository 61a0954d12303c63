"""What a run of the local executor tells while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.failures import ActionError


class Watcher:
    """Hears of a run; for displays. Calls come from several threads, one at a time."""

    def planned(self, actions: Sequence[Action], seconds: Mapping[Action, float]) -> None:
        """These will be looked at, and would take about so many seconds of a processor each."""

    def started(self, action: Action) -> None:
        """Its command starts, or waits for memory."""

    def ended(self, action: Action, cached: bool) -> None:
        """Its outputs are there: made just now, or before (``cached``)."""

    def failed(self, error: ActionError) -> None:
        """Its command failed, now or before."""

    def parted(self, actions: Sequence[Action], why: str) -> None:
        """They had started as one command, which came to nothing: each is now started by itself."""
