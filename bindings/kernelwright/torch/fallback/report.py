"""Which share of calls and time was ours, and what torch computed for which reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch.recording.trace import Entry, add, entry
from kernelwright.torch.fallback.decisions import OPERATORS
from kernelwright.torch.road import ROAD


@dataclass(frozen=True)
class OperatorShare:
    """Calls of one operator since the process began, or :func:`reset_report`.

    :ivar operator: its name in torch's namespace ``kernelwright``.
    :ivar ours: calls that kernels computed; ``torchs`` those that torch's own operators computed.
    :ivar ours_s: seconds that kernels' calls took on the host, and ``torchs_s`` the others: of a GPU the launches.
    :ivar native: those of ``ours`` that took the native road.
    """

    operator: str
    ours: int
    torchs: int
    ours_s: float
    torchs_s: float
    native: int

    @property
    def share(self) -> float:
        """The share of calls that kernels computed, from 0 to 1; 1 where there was none."""
        return _share(self.ours, self.torchs)

    @property
    def time_share(self) -> float:
        """The same of time on the host."""
        return _share(self.ours_s, self.torchs_s)


@dataclass(frozen=True)
class Unserved:
    """What torch computed for one reason.

    :ivar calls: how often; ``host_s`` is the time on the host in seconds.
    :ivar message: why no kernel serves the first of the problems.
    :ivar problems: the problems of the dispatcher, with architecture of its libraries and calls; some of them, where
        there are many.
    """

    operator: str
    calls: int
    host_s: float
    message: str
    problems: tuple[tuple[Any, str, int], ...]


@dataclass(frozen=True)
class Report:
    """Which share of the calls of :mod:`kernelwright.torch` was ours.

    :ivar road: ``native`` where eager calls launch known plans from C++, else ``python`` and why.
    :ivar operators: in alphabetical order; operators without a call are left out.
    :ivar unserved: most frequent first.
    """

    road: str
    operators: tuple[OperatorShare, ...]
    unserved: tuple[Unserved, ...]

    @property
    def share(self) -> float:
        """The share of all calls that kernels computed, from 0 to 1."""
        return _share(sum(one.ours for one in self.operators), sum(one.torchs for one in self.operators))

    def save(self, path: str | os.PathLike[str]) -> int:
        """Add the problems that no kernel served to a trace file, as ``record`` does; how many there are.

        ``kernel_set(name="more", problems=path, archs=[…])`` makes kernels for them. OSError if the file cannot be
        written; ValueError if it is there and no trace.
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
    """Calls of operators so far, by kernels and by torch's own operators, with the reasons for the latter.

    A graph counts a call whenever it runs an operator; what was left to torch while it was traced counts once. Backward
    passes of torch's own operators are torch's, and count nowhere.
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
    """Count from 0, and log each reason once more."""
    for name, one in OPERATORS.items():
        one.reset()
        ROAD.counted(name, reset=True)


def _share(ours: float, others: float) -> float:
    return ours / (ours + others) if ours + others else 1.0
