"""Traces of recorded problems, as ``kernelwright.dispatch.record`` writes them, and tables of the tile engine."""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.codegen.operation import TimeModel, operation, operation_names
from kernelwright.codegen.violations import SpecError

VERSION = 1


@dataclass(frozen=True)
class Wanted:
    """A problem of an operation, and how often it was posed."""

    op: str
    text: str
    posed: Any
    count: int


def read_wanted(raw: object) -> list[Wanted]:
    """The problems of a trace, each once for all architectures, most frequent first.

    SpecError for what is no trace, a malformed problem, and an operation whose kernels no model predicts.
    """
    if not isinstance(raw, Mapping) or raw.get("version") != VERSION or not isinstance(raw.get("problems"), list):
        raise SpecError(
            f'a trace is {{"version": {VERSION}, "problems": […]}}, as kernelwright.dispatch.record writes it'
        )
    found: dict[tuple[str, Hashable], Wanted] = {}
    for index, entry in enumerate(raw["problems"]):
        try:
            one = _wanted(entry)
        except SpecError as error:
            raise SpecError(f"problem {index} of the trace: {error}") from None
        key = one.op, _model(one.op).key(one.posed)
        count = one.count + (found[key].count if key in found else 0)
        found[key] = Wanted(one.op, one.text, one.posed, count)
    if not found:
        raise SpecError("the trace holds no problem; record a program that poses some")
    return sorted(found.values(), key=lambda one: (-one.count, one.text))


def _wanted(entry: object) -> Wanted:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("problem"), Mapping):
        raise SpecError(f"{entry!r} is no object with op, problem and count")
    count, unserved = entry.get("count", 0), entry.get("unserved", 0)
    if not all(type(value) is int and value >= 0 for value in (count, unserved)):
        raise SpecError(f"count {count!r} and unserved {unserved!r}: write whole numbers")
    op, problem = str(entry.get("op")), entry["problem"]
    text = f"{op} {' '.join(f'{key}={json.dumps(value)}' for key, value in problem.items())}".replace('"', "")
    return Wanted(op, text, _model(op).read(problem), max(1, count + unserved))


def _model(op: str) -> TimeModel:
    predicted = [name for name in operation_names() if operation(name).time_model is not None]
    model = operation(op).time_model if op in predicted else None
    if model is None:
        raise SpecError(f"no model predicts times of {op!r}; allowed: {', '.join(predicted)}; record those apart")
    return model


def model_of(one: Wanted) -> TimeModel:
    """What predicts times for a problem."""
    return _model(one.op)


def read_measured(path: str | Path) -> dict[tuple[Hashable, str], float]:
    """Microseconds by problem and kernel identity of a table of the tile engine; the best of a kernel's choices.

    SpecError for a file that cannot be read, lacks a column or has no time.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            found = dict(_best(csv.DictReader(file)))
    except (OSError, KeyError, ValueError) as error:
        raise SpecError(f"{str(path)!r} is no table of `kernelwright tile-engine bench`: {error!r}") from None
    if not found:
        raise SpecError(f"{str(path)!r} has no measured time")
    return found


def _best(rows: csv.DictReader[str]) -> Iterator[tuple[tuple[Hashable, str], float]]:
    model, best = _model("gemm"), dict[tuple[Hashable, str], float]()
    for row in rows:
        if row["status"] == "ok" and row["latency_ms"]:
            extents = {name: int(row[name]) for name in ("m", "n", "k", "batch")}
            words = {name: row[name] for name in ("layout", "dtype", "dtype_c")}
            key = model.key(model.read({**extents, **words})), row["identity"]
            best[key] = min(float(row["latency_ms"]) * 1e3, best.get(key, float("inf")))
    yield from best.items()
