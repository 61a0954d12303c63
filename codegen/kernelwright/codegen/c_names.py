"""Records of the C ABI's descriptions in Python, and their values in C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from kernelwright.problems.fields import RECORDS, Member, Said, Struct, Word

R = TypeVar("R")


def data_class(*records: type[Any]) -> None:
    """Turn records of descriptions into data classes; members that rules do not read are 0 and not arguments."""
    for one in records:
        for name, said in [*vars(one).items()]:
            if not isinstance(said, Said):
                continue
            if said.default is MISSING:
                delattr(one, name)
            else:
                setattr(one, name, field(default=said.default, init=said.init))
        dataclass(frozen=True)(one)


def record_of(kind: type[R], given: Mapping[str, Any]) -> R:
    """Make the record that rules read from the words, numbers and tuples of a problem, given by their names in C."""
    described = RECORDS[kind].members
    names = [one.name for one in fields(kind) if one.init]  # type: ignore[arg-type]
    return kind(**{name: _typed(described[name], given[name]) if name in described else given[name] for name in names})


def _typed(member: Member, value: Any) -> Any:
    if member.enum is not None:
        return member.enum(value)
    if isinstance(member.field.type, Struct):
        return next(one for one, struct in RECORDS.items() if struct is member.field.type)(*value)
    return value


def expression(value: object) -> str:
    """A record's field in C: a number, an enumerator, 0 for None, an initialiser, or ``KW_SERVES(…) | …``."""
    if isinstance(value, frozenset):
        return _serves(value)
    if isinstance(value, tuple):
        return "{%s}" % ", ".join(map(expression, value))  # noqa: UP031 - braces
    if type(value) in RECORDS:
        return initialiser(value)
    if value is None or isinstance(value, float):
        return "0" if value is None else repr(value)
    return value.c_name if isinstance(value, Word) else str(int(value))  # type: ignore[call-overload]


def members(record: Any) -> Mapping[str, str]:
    """The members of a record that rules read, as C expressions by the struct's member names."""
    return {member_name(one.name): expression(getattr(record, one.name)) for one in fields(record) if one.init}


def member_name(field: str) -> str:
    """The C name of a record's field: the operation is in the common head of all problems."""
    return "base.op" if field == "op" else field


def initialiser(record: Any) -> str:
    """A record as a C designated initialiser."""
    return "{%s}" % ", ".join(f".{name} = {value}" for name, value in members(record).items())  # noqa: UP031 - braces


def _serves(values: Iterable[Any]) -> str:
    given = frozenset(values)
    if given == {False, True}:
        return "KW_SERVES_BOTH"
    # Enumerators in the order of their members, so that equal sets have the same text.
    listed = [one for kind in {type(value) for value in given} for one in (kind if issubclass(kind, Enum) else given)]
    return " | ".join(f"KW_SERVES({expression(one)})" for one in listed if one in given) or "0"
