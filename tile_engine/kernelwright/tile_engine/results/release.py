"""The kernels of a release set, chosen from tables, as a rule set's entries with their origin."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.files.strict_json import read_json
from kernelwright.tile_engine.results.analysis import Timed
from kernelwright.tile_engine.results.cover import Step, greedy_cover, mean_share, reached_by

_EXTENTS = ("tile", "wave", "warp_tile", "cluster", "pad")
Cost = Mapping[str, float]
"""Compile time in seconds by identity."""


@dataclass(frozen=True)
class Release:
    """The chosen kernels in order of gain per second of compile time.

    :ivar steps: one per kernel: the efficiency of the set once it is added.
    :ivar problems: number of problems.
    :ivar start: efficiency of the kernels that are in the set anyway.
    """

    steps: tuple[Step, ...]
    problems: int
    start: float


def require_stages(columns: Collection[str], auxiliary: Sequence[str]) -> None:
    """Raise ValueError for a table without the other kernels of plans, if the operation's plans may have some.

    ``columns`` are the table's; ``auxiliary`` are names of kernels that only prepare or finish others' work.
    """
    if auxiliary and "stages" not in columns:
        raise ValueError(
            f"the table does not say which kernels such as {auxiliary[0]} a plan needs, so a release could lack them; "
            "measure again: `tile-engine bench` writes them into the column stages"
        )


def choose_release(
    times: Sequence[Timed], cost: Cost, reach: float, most: int | None, given: Collection[str] = ()
) -> Release:
    """Choose kernels until the geometric mean of speed ratios is ``reach``, at most ``most`` including companions.

    Kernels ``given`` are in the set anyway and are neither listed nor counted.

    Raises ValueError if tables hold no time, or if all kernels, or ``most`` of them, reach less.
    """
    if not times:
        raise ValueError("the tables hold no time of the element type on the architecture")
    steps = greedy_cover(times, cost.__getitem__, given, reach)
    taken: list[Step] = []
    start = mean_share(reached_by(times, given))
    count, reached = 0, start
    for step in steps:
        count += 1 + len(step.companions)
        if reached >= reach or (most is not None and count > most):
            break
        taken.append(step)
        reached = step.efficiency
    if reached < reach:
        what = f"{most} kernels" if most is not None and count > most else f"all {count} kernels"
        raise ValueError(
            f"{what} reach {reached:.4f} of the fastest kernels' speed, below {reach}; "
            "allow more kernels or ask for less"
        )
    return Release(tuple(taken), len({one.problem for one in times}), start)


def entry(spec: Mapping[str, Any], dtype: str = "", other: str = "") -> dict[str, Any]:
    """A kernel as a rule-set entry: a configuration with one combination; ``other`` replaces the type ``dtype``."""
    problem = {key: value for key, value in spec.items() if key != "op"}
    problem |= {key: other for key in ("dtype_a", "dtype_b", "dtype_c") if other and problem.get(key) == dtype}
    for name in _EXTENTS:
        if name in problem:
            problem[name] = [problem[name][axis] for axis in "mnk"]
    return {"op": spec["op"], "problem": problem}


def add_to_rule_set(path: Path, arch: str, entries: Sequence[Mapping[str, Any]], *, anew: bool = False) -> int:
    """Add entries to an architecture's list in a rule-set file, each once. Returns the length of the list.

    ``anew`` drops the previous entries.
    """
    content: dict[str, list[Any]] = read_json(path) if path.exists() else {}
    if not isinstance(content, dict) or not all(isinstance(listed, list) for listed in content.values()):
        raise ValueError(f"{path} is no rule set; name a file that holds {{architecture: [entry, …]}}, or a new one")
    if anew:
        content[arch] = []
    listed = content.setdefault(arch, [])
    listed += [one for one in entries if one not in listed]
    lines = [
        f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(one)}" for one in content[name]) + "\n  ]"
        for name in sorted(content)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return len(listed)
