"""Analysis of a table: the best kernel of each problem, efficiencies, the selector's regret, regressions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.tile_engine.measuring.measure import OK

TOP = (1, 3, 5)
Cells = Mapping[str, str]
"""A row as in a CSV file: all values are text."""


@dataclass(frozen=True)
class Timed:
    """A correct kernel on a problem.

    :ivar problem: the problem's index.
    :ivar choices: choices of the launch, such as ``split_k=4``; empty if nothing was open.
    :ivar milliseconds: median time of a launch.
    :ivar selected: whether the dispatcher chooses this kernel for the problem.
    :ivar rank: its rank by the dispatcher, from 1; 0 if the table does not state it.
    :ivar stages: identities of the other kernels of its plan, which prepare or finish its work.
    """

    problem: int
    identity: str
    kernel: str
    choices: str
    milliseconds: float
    selected: bool
    cells: Cells
    rank: int = 0
    stages: tuple[str, ...] = ()


def timed(rows: Iterable[Cells]) -> list[Timed]:
    """The rows with times, for kernels that compute a problem's result rather than just prepare or finish it.

    Of several rows for a kernel, problem and choices, the last one counts, which a repeated run appended.
    """
    latest: dict[tuple[int, str, str], Timed] = {}
    for cells in rows:
        if cells["status"] == OK and cells["latency_ms"] and not cells.get("auxiliary"):
            one = Timed(
                int(cells["problem_idx"]), cells["identity"], cells["kernel"], cells.get("choices", ""),
                float(cells["latency_ms"]), cells["selected"] == "1", cells, int(cells.get("rank") or 0),
                tuple(filter(None, cells.get("stages", "").split(";"))),
            )  # fmt: skip
            latest[one.problem, one.identity, one.choices] = one
    return list(latest.values())


def best(times: Sequence[Timed]) -> dict[int, Timed]:
    """The fastest kernel of each problem."""
    fastest: dict[int, Timed] = {}
    for one in times:
        if one.problem not in fastest or one.milliseconds < fastest[one.problem].milliseconds:
            fastest[one.problem] = one
    return dict(sorted(fastest.items()))


@dataclass(frozen=True)
class Counted:
    """A correct kernel on a problem of a simulated device.

    :ivar instructions: numbers of executed instructions, by class.
    :ivar total: number over all classes.
    """

    problem: int
    identity: str
    kernel: str
    instructions: Mapping[str, int]
    total: int


def fewest_instructions(rows: Iterable[Cells]) -> list[Counted]:
    """The kernel with the fewest instructions for each problem with counts; auxiliary kernels do not count."""
    fewest: dict[int, Counted] = {}
    for cells in rows:
        if cells["status"] != OK or not cells.get("instructions") or cells.get("auxiliary"):
            continue
        pairs = (pair.partition("=") for pair in cells["instructions"].split(";"))
        counts = {word: int(count) for word, _, count in pairs}
        total = counts.pop("all")
        one = Counted(int(cells["problem_idx"]), cells["identity"], cells["kernel"], counts, total)
        if one.problem not in fewest or one.total < fewest[one.problem].total:
            fewest[one.problem] = one
    return [fewest[problem] for problem in sorted(fewest)]


@dataclass(frozen=True)
class Efficiency:
    """Fractions of the best kernel's speed that the selected kernels reach, over ``problems`` problems.

    :ivar lowest: the problems with the lowest fractions, worst first.
    :ivar top: mean fraction for the fastest of the top 1, 3 and 5 kernels of the ranking, as if these were measured
        again; empty if a table has no ranks.
    """

    problems: int
    mean: float
    median: float
    p10: float
    minimum: float
    lowest: tuple[tuple[float, Timed, Timed], ...]
    top: Mapping[int, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """JSON values, without the individual problems."""
        return {name: value for name, value in vars(self).items() if name != "lowest"}

    def __str__(self) -> str:
        """One line."""
        top = "; " + ", ".join(f"best of {k} {share:.4f}" for k, share in self.top.items() if k > 1) if self.top else ""
        return (
            f"{self.problems} problems: mean {self.mean:.4f}, median {self.median:.4f}, P10 {self.p10:.4f}, "
            f"min {self.minimum:.4f}{top}"
        )


def selection_efficiency(times: Sequence[Timed], worst: int = 10) -> Efficiency | None:
    """Efficiency of the dispatcher's choices; None if no row is marked as selected.

    A fraction is the time of the fastest kernel over the time of the selected one. A problem counts if the selected
    kernel has a time.
    """
    fastest = best(times)
    shares = [(fastest[one.problem].milliseconds / one.milliseconds, one) for one in times if one.selected]
    if not shares:
        return None
    values = sorted(share for share, _ in shares)
    low = sorted(shares, key=lambda pair: pair[0])[:worst]
    return Efficiency(
        problems=len(values),
        mean=statistics.fmean(values),
        median=statistics.median(values),
        p10=values[max(0, -(-len(values) // 10) - 1)],
        minimum=values[0],
        lowest=tuple((share, one, fastest[one.problem]) for share, one in low),
        top=_top(times, {one.problem: fastest[one.problem].milliseconds for _, one in shares}),
    )


def _top(times: Sequence[Timed], fastest: Mapping[int, float]) -> dict[int, float]:
    """Mean fraction that the fastest of the top kernels reaches, over the problems of ``fastest``."""
    ranked: dict[int, list[Timed]] = {problem: [] for problem in fastest}
    for one in times:
        if one.rank and one.problem in ranked:
            ranked[one.problem].append(one)
    if not all(ranked.values()):
        return {}
    order = [sorted(each, key=lambda one: one.rank) for each in ranked.values()]
    return {
        k: statistics.fmean(fastest[each[0].problem] / min(one.milliseconds for one in each[:k]) for each in order)
        for k in TOP
    }


@dataclass(frozen=True)
class Change:
    """A pair in two tables; ``ratio`` is the new time over the old one, so above 1 means slower."""

    ratio: float
    old: Timed
    new: Timed


def changes(old: Sequence[Timed], new: Sequence[Timed]) -> list[Change]:
    """Pairs of kernel and problem that both tables have, regressions first.

    Problems are matched by their index, so both tables must be of one problem set.
    """
    before = {(one.problem, one.identity, one.choices): one for one in old}
    pairs = [(before[key], one) for one in new if (key := (one.problem, one.identity, one.choices)) in before]
    changed = [Change(after.milliseconds / earlier.milliseconds, earlier, after) for earlier, after in pairs]
    return sorted(changed, key=lambda change: -change.ratio)


def broken(old: Sequence[Timed], rows: Iterable[Cells]) -> list[Cells]:
    """Rows without a time for pairs of kernel and problem that had one in an earlier table, the last row of each."""
    rows = list(rows)
    before = {(one.problem, one.identity) for one in old}
    right = {(one.problem, one.identity) for one in timed(rows)}
    latest = {(int(row["problem_idx"]), row["identity"]): row for row in rows}
    return [row for key, row in latest.items() if key in before - right]


def require_same_problems(old: Iterable[Cells], new: Iterable[Cells], columns: Sequence[str]) -> None:
    """Raise ValueError if a number means different problems in the two tables; ``columns`` are a problem's."""
    known = {row["problem_idx"]: [row[column] for column in columns] for row in old}
    for row in new:
        if known.get(row["problem_idx"], own := [row[column] for column in columns]) != own:
            raise ValueError(
                f"problem {row['problem_idx']} is another one in the earlier table; compare tables of one problem set"
            )
