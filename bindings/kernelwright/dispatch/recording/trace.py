"""Trace files: problems with counts, as JSON that processes and runs add to."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kernelwright.dispatch.core import operation
from kernelwright.dispatch.core.errors import ProblemError
from kernelwright.dispatch.recording.files import locked, replace

VERSION = 1


@dataclass
class Entry:
    """How often a problem was posed.

    :ivar op: the operation, such as ``gemm``.
    :ivar arch: the architecture of the libraries that it was posed to.
    :ivar problem: fields of the problem that differ from their defaults, as JSON values.
    :ivar count: launches.
    :ivar unserved: how often no kernel served it.
    """

    op: str
    arch: str
    problem: Mapping[str, Any]
    count: int = 0
    unserved: int = 0

    @property
    def key(self) -> str:
        """Equal for entries of one problem and architecture."""
        return json.dumps([self.op, self.arch, self.problem], sort_keys=True)


def entry(problem: Any, arch: str, count: int = 0, unserved: int = 0) -> Entry:
    """The entry of a problem object. A field is left out if the problem stays the same without it."""
    given = {one.name: getattr(problem, one.name) for one in fields(problem) if one.init}
    for name in reversed(list(given)):  # what follows from a field stands behind it
        rest = {key: value for key, value in given.items() if key != name}
        with contextlib.suppress(TypeError, ProblemError):
            if type(problem)(**rest) == problem:
                given = rest
    word = operation.of_problem(problem).name.partition(",")[0]
    return Entry(word, arch, json.loads(json.dumps(given)), count, unserved)


def read_trace(path: str | os.PathLike[str]) -> list[Entry]:
    """The entries of a file, most frequent first. ValueError for a file that is no trace of this version."""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
        if content["version"] != VERSION:
            raise ValueError(f"version is {content['version']}; allowed: {VERSION}")
        found = [Entry(**one) for one in content["problems"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no trace of recorded problems: {error}") from None
    return sorted(found, key=lambda one: (-one.count - one.unserved, one.key))


def merge_traces(paths: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Add the counts of traces to those in ``path``, which may not exist yet. ValueError for what is no trace."""
    add(path, [one for each in paths for one in read_trace(each)])


def add(path: str | os.PathLike[str], entries: Sequence[Entry]) -> None:
    """Add counts to a file. Processes that do so at once wait for each other; a reader never sees half a file."""
    with locked(Path(path)) as target:
        merged: dict[str, Entry] = {}
        for one in (*(read_trace(target) if target.stat().st_size else ()), *entries):
            before = merged.setdefault(one.key, Entry(one.op, one.arch, one.problem))
            before.count += one.count
            before.unserved += one.unserved
        listed = sorted(merged.values(), key=lambda one: (-one.count - one.unserved, one.key))
        lines = ",\n".join(f"  {json.dumps(vars(one), sort_keys=True)}" for one in listed)
        replace(target, f'{{"version": {VERSION}, "problems": [\n{lines}\n]}}\n')
