"""Trace files: problems with counts, as JSON that processes and runs add to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kernelwright.dispatch.core import operation
from kernelwright.dispatch.core.errors import TraceError
from kernelwright.dispatch.recording.files import locked, replace
from kernelwright.files.strict_json import read_json

VERSION = 1


@dataclass
class Entry:
    """How often a program asked for a problem.

    :ivar op: the operation, such as ``gemm``.
    :ivar arch: the architecture of the libraries that were asked.
    :ivar problem: fields of the problem that differ from their defaults, as JSON values.
    :ivar count: number of launches.
    :ivar unserved: number of times that no kernel served it.
    """

    op: str
    arch: str
    problem: Mapping[str, Any]
    count: int = 0
    unserved: int = 0

    @property
    def key(self) -> str:
        """Key, equal for entries of one problem and architecture."""
        return json.dumps([self.op, self.arch, self.problem], sort_keys=True)


def entry(problem: Any, arch: str, count: int = 0, unserved: int = 0) -> Entry:
    """The entry of a problem object. A field is omitted if the problem stays the same without it."""
    given = operation.fewest_fields(problem)
    offered = operation.of_problem(problem)
    return Entry(offered.recorded or offered.name, arch, json.loads(json.dumps(given)), count, unserved)


def read_trace(path: str | os.PathLike[str]) -> list[Entry]:
    """The entries of a file, most frequent first. Raises TraceError for a file that is not a trace of this version."""
    try:
        content = read_json(path)
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise ValueError(f"allowed: an object with version {VERSION} and problems")
        listed = content.get("problems")
        if not isinstance(listed, list):
            raise ValueError(f"problems is {listed!r:.80}; allowed: a list")
        entries = [_entry(one, index) for index, one in enumerate(listed)]
    except ValueError as error:
        raise TraceError(f"{path} is no trace of recorded problems: {error}; record a program again") from None
    return sorted(entries, key=lambda one: (-one.count - one.unserved, one.key))


def _entry(raw: object, index: int) -> Entry:
    if not isinstance(raw, dict) or not {"op", "arch", "problem"} <= set(raw) <= {one.name for one in fields(Entry)}:
        raise ValueError(f"problem {index} is {raw!r:.80}; allowed: op, arch, problem, count and unserved")
    made = Entry(**raw)
    counted = all(type(value) is int and value >= 0 for value in (made.count, made.unserved))
    if (
        not isinstance(made.op, str)
        or not isinstance(made.arch, str)
        or not isinstance(made.problem, dict)
        or not counted
    ):
        raise ValueError(f"problem {index} is {raw!r:.80}; allowed: two texts, an object, and whole numbers from 0")
    return made


def merge_traces(paths: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Add the counts of traces to those in ``path``, which need not exist yet. Raises TraceError for any other file."""
    add(path, [one for each in paths for one in read_trace(each)])


def add(path: str | os.PathLike[str], entries: Sequence[Entry]) -> None:
    """Add counts to a file. Concurrent processes wait for each other; a reader never sees a partial file."""
    with locked(Path(path)) as target:
        merged: dict[str, Entry] = {}
        for one in (*(read_trace(target) if target.stat().st_size else ()), *entries):
            before = merged.setdefault(one.key, Entry(one.op, one.arch, one.problem))
            before.count += one.count
            before.unserved += one.unserved
        listed = sorted(merged.values(), key=lambda one: (-one.count - one.unserved, one.key))
        lines = ",\n".join(f"  {json.dumps(vars(one), sort_keys=True)}" for one in listed)
        replace(target, f'{{"version": {VERSION}, "problems": [\n{lines}\n]}}\n')
