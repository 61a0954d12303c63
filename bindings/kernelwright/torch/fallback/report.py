"""Shares of calls and time that kernels computed, and what torch computed for which reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch.recording.trace import Entry, add, entry
from kernelwright.torch.fallback.decisions import OPERATORS
from kernelwright.torch.road import ROAD


@dataclass(frozen=True)
class OperatorShare:
    """Calls of one operator since the process began, or since :func:`reset_report`.

    :ivar operator: its name in torch's namespace ``kernelwright``.
    :ivar ours: number of calls computed by kernels; ``torchs`` is the number computed by torch's own operators.
    :ivar ours_s: host seconds of the calls computed by kernels; ``torchs_s`` those of the others. On a GPU they cover
        launches only.
    :ivar native: number of calls among ``ours`` that took the native road.
    """

    operator: str
    ours: int
    torchs: int
    ours_s: float
    torchs_s: float
    native: int

    @property
    def share(self) -> float:
        """Share of calls that kernels computed, from 0 to 1; 1 if there were no calls."""
        return _share(self.ours, self.torchs)

    @property
    def time_share(self) -> float:
        """Share of host time spent in calls that kernels computed."""
        return _share(self.ours_s, self.torchs_s)


@dataclass(frozen=True)
class Unserved:
    """Calls that torch computed for one reason.

    :ivar calls: number of calls; ``host_s`` is their time on the host in seconds.
    :ivar message: why no kernel serves the first of the problems.
    :ivar problems: the dispatcher's problems, with the architecture of its libraries and calls; only some if there are
        many.
    """

    operator: str
    calls: int
    host_s: float
    message: str
    problems: tuple[tuple[Any, str, int], ...]


@dataclass(frozen=True)
class Report:
    """Share of the calls of :mod:`kernelwright.torch` that kernels computed.

    :ivar road: ``native`` if eager calls launch known plans from C++, else ``python`` and why.
    :ivar operators: in alphabetical order; operators without a call are left out.
    :ivar unserved: most frequent first.
    """

    road: str
    operators: tuple[OperatorShare, ...]
    unserved: tuple[Unserved, ...]

    @property
    def share(self) -> float:
        """Share of all calls that kernels computed, from 0 to 1."""
        return _share(sum(one.ours for one in self.operators), sum(one.torchs for one in self.operators))

    def save(self, path: str | os.PathLike[str]) -> int:
        """Add the problems that no kernel served to a trace file, as ``record`` does. Returns their number.

        ``kernel_set(name="more", problems=path, archs=[…])`` makes kernels for them. Raises OSError if the file cannot
        be written, ValueError if it exists and is not a trace.
        """
        entries: list[Entry] = []
        for one in self.unserved:
            entries += [entry(problem, arch, 0, calls) for problem, arch, calls in one.problems]
        add(os.fspath(path), entries)
        return len(entries)

    def __str__(self) -> str:
        """Two tables as text."""
        lines = [f"road of eager calls: {self.road}"]
        lines.append("operator                        kernels    torch  share of calls  share of host time")
        lines += [
            f"{one.operator:<28} {one.ours:>10} {one.torchs:>8} {one.share:>14.1%} {one.time_share:>19.1%}"
            for one in self.operators
        ]
        lines += [f"{one.calls} calls of {one.operator} by torch: {one.message}" for one in self.unserved]
        return "\n".join(lines)


def report() -> Report:
    """Report the operator calls so far, by kernels and by torch's own operators, with the reasons for the latter.

    A graph counts a call whenever it runs an operator; a call left to torch while the graph was traced counts once.
    Backward passes of torch's own operators are not counted.
    """
    operators, unserved = [], []
    for name, one in sorted(OPERATORS.items()):
        reasons = list(one.reasons.values())
        calls, host_ns = sum(each.calls for each in reasons), sum(each.host_ns for each in reasons)
        native, native_ns = ROAD.counted(name)
        if one.ours or native or calls:
            ours_s = (one.ours_ns + native_ns) / 1e9
            operators.append(OperatorShare(name, one.ours + native, calls, ours_s, host_ns / 1e9, native))
        for each in reasons:
            problems = ((r.problem, r.arch, r.calls) for r in each.refusals if r.problem is not None)
            unserved.append(Unserved(name, each.calls, each.host_ns / 1e9, each.message, tuple(problems)))
    return Report(ROAD.name, tuple(operators), tuple(sorted(unserved, key=lambda one: -one.calls)))


def reset_report() -> None:
    """Reset the counts to 0, and log each reason once more."""
    for name, one in OPERATORS.items():
        one.reset()
        ROAD.counted(name, reset=True)


def _share(ours: float, others: float) -> float:
    return ours / (ours + others) if ours + others else 1.0
