"""Problems by key, such as ``gemm-held-out-bf16``, or from a JSON file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.violations import closest
from kernelwright.files.strict_json import read_json
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import OPERATIONS

_EXAMPLE = '{"m": 16, "n": 4096, "k": 4096}'
KEYS: tuple[str, ...] = tuple(key for one in OPERATIONS.values() for key in one.problem_sets.keys)
"""Problem sets by key; the first word of a key names its operation."""


def operation_of(named: str) -> str:
    """The name of the operation that a key is for, that a JSON file states as ``op``, or whose columns alone have all
    names of its first record; empty if nothing says one. Raises ValueError for what is neither a key nor a file."""
    key = next((one.name for one in OPERATIONS.values() if named in one.problem_sets.keys), "")
    if key:
        return key
    _check_file(named)
    content = _content(named)
    if isinstance(content, Mapping):
        if "op" in content:
            return str(content["op"])
        content = content.get("problems")
    first = content[0] if isinstance(content, list) and content else None
    names = {str(name).lower() for name in first} if isinstance(first, Mapping) else set()
    able = [one.name for one in OPERATIONS.values() if names and names <= set(one.columns)]
    return able[0] if len(able) == 1 else ""


def problems(operation: Measurable, named: str) -> tuple[Record, ...]:
    """The records of a key in KEYS, or of the JSON file ``named``.

    A file holds a list of records, or an object with the list under ``problems`` and the operation under ``op``. Raises
    ValueError for an unknown key, an unreadable file, an illegal record, or no record at all.
    """
    own = operation.problem_sets
    if named in own.keys:
        raw: Sequence[Any] = list(own.records(named))
    elif named in KEYS:
        raise ValueError(f"{named!r} is a key of another operation than {operation.name}; choose it with --variant")
    else:
        raw = _read(named)
    records = tuple(dict.fromkeys(_frozen(_checked(operation, one, named, place)) for place, one in enumerate(raw)))
    if not records:
        raise ValueError(f"{named} holds no problem")
    return tuple(map(dict, records))


def _read(named: str) -> Sequence[Any]:
    _check_file(named)
    content = _content(named)
    listed = content.get("problems") if isinstance(content, Mapping) else content
    if not isinstance(listed, list):
        raise ValueError(f'{named} holds no list of problems; write [{{…}}, …] or {{"problems": [{{…}}, …]}}')
    return listed


def _check_file(named: str) -> None:
    if not Path(named).is_file():
        hint = closest(named, KEYS) or f" such as {KEYS[0]}"
        raise ValueError(f"{named!r} is neither a file nor a key{hint}; `tile-engine problems` lists all keys")


def _content(named: str) -> object:
    try:
        content: object = read_json(named)
    except ValueError as error:
        raise ValueError(f"{named} is not JSON: {error}") from None
    return content


def _checked(operation: Measurable, one: object, named: str, place: int) -> Record:
    """Check a record and complete its columns; ValueError says which entry is wrong."""
    where = f"problem {place} of {named}"
    if not isinstance(one, Mapping):
        raise ValueError(f"{where} is {one!r}; write an object such as {_EXAMPLE}")
    names = Counter(str(name).lower() for name in one)
    if twice := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"{where} states {', '.join(twice)} in capitals and without; leave one out")
    if flags := sorted(str(name) for name, value in one.items() if isinstance(value, bool)):
        raise ValueError(f"{where}: {', '.join(flags)} is true or false; write a number")
    if nested := sorted(str(name) for name, value in one.items() if isinstance(value, dict | list)):
        raise ValueError(f"{where}: {', '.join(nested)} is an object or a list; write a number or a word")
    try:
        return operation.read(one)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _frozen(record: Record) -> tuple[tuple[str, Any], ...]:
    return tuple(record.items())
