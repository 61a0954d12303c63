"""Traces of recorded problems, as ``kernelwright.dispatch.record`` writes them, and tables of the tile engine."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.codegen.operation import TimeModel, operation, operation_names
from kernelwright.codegen.violations import SpecError
from kernelwright.files.csv_table import read_text, rows_of

VERSION = 1


@dataclass(frozen=True)
class Wanted:
    """A problem of an operation, and how often it occurred."""

    op: str
    text: str
    asked: Any
    count: int

    @property
    def model(self) -> TimeModel:
        """The model that predicts times for it."""
        model = operation(self.op).time_model
        assert model is not None
        return model

    @property
    def key(self) -> Hashable:
        """A key that is equal for problems that one measurement stands for."""
        return self.op, self.model.key(self.asked)


def read_wanted(raw: object) -> list[Wanted]:
    """Return the problems of a trace, each once for all architectures, most frequent first.

    SpecError for data that is not a trace, a malformed problem, and an operation whose kernels no model predicts.
    """
    if not isinstance(raw, Mapping) or raw.get("version") != VERSION or not isinstance(raw.get("problems"), list):
        raise SpecError(
            f'a trace is {{"version": {VERSION}, "problems": […]}}, as kernelwright.dispatch.record writes it'
        )
    by_key: dict[Hashable, Wanted] = {}
    for index, entry in enumerate(raw["problems"]):
        try:
            one = _wanted(entry)
        except SpecError as error:
            raise SpecError(f"problem {index} of the trace: {error}") from None
        count = one.count + (by_key[one.key].count if one.key in by_key else 0)
        by_key[one.key] = Wanted(one.op, one.text, one.asked, count)
    if not by_key:
        raise SpecError("the trace holds no problem; record a program that has some")
    return sorted(by_key.values(), key=lambda one: (-one.count, one.text))


def _wanted(entry: object) -> Wanted:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("problem"), Mapping):
        raise SpecError(f"{entry!r} is no object with op, problem and count")
    count, unserved = entry.get("count", 0), entry.get("unserved", 0)
    if not all(type(value) is int and value >= 0 for value in (count, unserved)):
        raise SpecError(f"count {count!r} and unserved {unserved!r}: write whole numbers")
    recorded, problem = str(entry.get("op")), entry["problem"]
    op = operation_of(recorded)
    text = f"{recorded} {' '.join(f'{key}={json.dumps(value)}' for key, value in problem.items())}".replace('"', "")
    model = operation(op).time_model
    assert model is not None
    return Wanted(op, text, model.read(problem, recorded), max(1, count + unserved))


def operation_of(recorded: str) -> str:
    """Return the operation whose problems have this name in traces. SpecError if no model predicts its kernels."""
    words = {word: op for op, model in _predicted().items() for word in model.recorded}
    if recorded not in words:
        raise SpecError(f"no model predicts times of {recorded!r}; allowed: {', '.join(words)}; record those apart")
    return words[recorded]


def _predicted() -> dict[str, TimeModel]:
    models = {name: operation(name).time_model for name in operation_names()}
    return {name: model for name, model in models.items() if model is not None}


@dataclass(frozen=True)
class Measured:
    """The time of a kernel on a problem, and the kernels of the plan's other stages by identity."""

    microseconds: float
    stages: tuple[str, ...] = ()


def read_measured(path: str | Path) -> dict[tuple[Hashable, str], Measured]:
    """Return times by problem key and kernel identity, from a table of the tile engine, gzipped or not.

    The best of several choices of a kernel counts. SpecError for a file that cannot be read, lacks a column or has no
    time.
    """
    try:
        rows = rows_of(read_text(path), path, ("status", "latency_ms", "identity"))
        measured = _best(rows)
    except (OSError, KeyError, ValueError) as error:
        raise SpecError(f"{str(path)!r} is no table of `kernelwright tile-engine bench`: {error!r}") from None
    if not measured:
        raise SpecError(f"{str(path)!r} has no measured time")
    return measured


def _best(rows: Iterable[Mapping[str, str]]) -> dict[tuple[Hashable, str], Measured]:
    best: dict[tuple[Hashable, str], Measured] = {}
    models = _predicted()
    for row in rows:
        if row["status"] != "ok" or not row["latency_ms"]:
            continue
        read = ((op, model, model.measured(row)) for op, model in models.items())
        known = next(((op, model.key(problem)) for op, model, problem in read if problem is not None), None)
        if known is None:
            raise ValueError(f"columns {', '.join(row)} hold no problem")
        milliseconds = float(row["latency_ms"])
        if not math.isfinite(milliseconds) or milliseconds <= 0:
            raise ValueError(f"latency_ms is {row['latency_ms']!r:.80}")
        one = Measured(milliseconds * 1e3, tuple(filter(None, (row.get("stages") or "").split(";"))))
        before = best.setdefault((known, row["identity"]), one)
        if one.microseconds < before.microseconds:
            best[known, row["identity"]] = one
    return best
