"""Events that the local executor reports during a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.failures import ActionError


class Watcher:
    """Receives the events of a run, for displays. Calls come from several threads, one at a time."""

    def planned(self, actions: Sequence[Action], seconds: Mapping[Action, float]) -> None:
        """These actions will be looked at; ``seconds`` estimates the processor time of each."""

    def started(self, action: Action) -> None:
        """The command of an action starts, or waits for memory."""

    def ended(self, action: Action, cached: bool) -> None:
        """The outputs of an action exist: made just now, or before (``cached``)."""

    def failed(self, error: ActionError) -> None:
        """The command of an action failed, now or before."""

    def parted(self, actions: Sequence[Action], why: str) -> None:
        """A command for several actions failed: each of them now starts by itself."""
