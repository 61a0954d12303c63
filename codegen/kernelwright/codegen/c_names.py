"""Records of the C ABI's descriptions in Python, and their values in C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from kernelwright.problems.fields import RECORDS, Member, Said, Struct, Word

R = TypeVar("R")


def data_class(*records: type[Any]) -> None:
    """Make data classes of records of descriptions; members that rules do not read are no arguments, and 0."""
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
    """The record of a problem that rules read, out of the words, numbers and tuples of its class by names of C."""
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
    """A field of a record in C: a number, an enumerator, 0 for None, an initialiser, or ``KW_SERVES(…) | …``."""
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
    """What rules read of a record, in C, by the names of the struct's members."""
    return {member_name(one.name): expression(getattr(record, one.name)) for one in fields(record) if one.init}


def member_name(field: str) -> str:
    """What C calls a field of a record: the operation stands in the head of all problems."""
    return "base.op" if field == "op" else field


def initialiser(record: Any) -> str:
    """A record as a designated initialiser of C."""
    return "{%s}" % ", ".join(f".{name} = {value}" for name, value in members(record).items())  # noqa: UP031 - braces


def _serves(values: Iterable[Any]) -> str:
    given = frozenset(values)
    if given == {False, True}:
        return "KW_SERVES_BOTH"
    # Enumerations in the order of their members, so that equal sets have one text.
    listed = [one for kind in {type(value) for value in given} for one in (kind if issubclass(kind, Enum) else given)]
    return " | ".join(f"KW_SERVES({expression(one)})" for one in listed if one in given) or "0"
