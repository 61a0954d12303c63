"""Problems by key, such as ``gemm-held-out-bf16``, or from a JSON file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.arch.texts import parse_json
from kernelwright.codegen.violations import closest
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.attention import ATTENTION_SETS
from kernelwright.tile_engine.problems.convolution import CONV_SETS
from kernelwright.tile_engine.problems.gemm import GEMM_SETS
from kernelwright.tile_engine.problems.problem_sets import ProblemSets

_EXAMPLE = '{"m": 16, "n": 4096, "k": 4096}'
_SETS: Mapping[str, ProblemSets] = {"gemm": GEMM_SETS, "convolution": CONV_SETS, "attention": ATTENTION_SETS}
KEYS: tuple[str, ...] = tuple(key for sets in _SETS.values() for key in sets.keys)
"""Each key is for one operation, which the first word names."""


def operation_of(named: str) -> str:
    """The name of the operation that a key is for, or that a JSON file states as ``op``; empty if neither says one."""
    key = next((name for name, sets in _SETS.items() if named in sets.keys), "")
    if key or not Path(named).is_file():
        return key
    content = _content(named)
    return str(content.get("op", "")) if isinstance(content, Mapping) else ""


def problems(operation: Measurable, named: str) -> tuple[Record, ...]:
    """The records of a key of KEYS, or of the JSON file ``named``.

    A file holds a list of records, or an object with the list under ``problems``, and the operation under ``op`` where
    it is not GEMM. ValueError for an unknown key, a file that cannot be read, an illegal record, or no record at all.
    """
    own = _SETS[operation.name]
    if named in own.keys:
        raw: Sequence[Any] = list(own.records(named))
    elif named in KEYS:
        raise ValueError(f"{named!r} is a key of another operation than {operation.name}; choose it with --variant")
    else:
        raw = _read(named)
    found = tuple(dict.fromkeys(_frozen(_checked(operation, one, named, place)) for place, one in enumerate(raw)))
    if not found:
        raise ValueError(f"{named} holds no problem")
    return tuple(map(dict, found))


def _read(named: str) -> Sequence[Any]:
    path = Path(named)
    if not path.is_file():
        hint = closest(named, KEYS) or f" such as {KEYS[0]}"
        raise ValueError(f"{named!r} is neither a file nor a key{hint}; `tile-engine problems` lists all keys")
    content = _content(named)
    listed = content.get("problems") if isinstance(content, Mapping) else content
    if not isinstance(listed, list):
        raise ValueError(f'{named} holds no list of problems; write [{{…}}, …] or {{"problems": [{{…}}, …]}}')
    return listed


def _content(named: str) -> object:
    try:
        content: object = parse_json(Path(named).read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{named} is not JSON: {error}") from None
    return content


def _checked(operation: Measurable, one: object, named: str, place: int) -> Record:
    """A record with every column; ValueError says which entry is wrong."""
    where = f"problem {place} of {named}"
    if not isinstance(one, Mapping):
        raise ValueError(f"{where} is {one!r}; write an object such as {_EXAMPLE}")
    names = Counter(str(name).lower() for name in one)
    if twice := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"{where} states {', '.join(twice)} in capitals and without; leave one out")
    if flags := sorted(str(name) for name, value in one.items() if isinstance(value, bool)):
        raise ValueError(f"{where}: {', '.join(flags)} is true or false; write a number")
    try:
        return operation.read(one)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _frozen(record: Record) -> tuple[tuple[str, Any], ...]:
    return tuple(record.items())
