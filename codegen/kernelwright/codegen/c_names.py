"""What Python's records are called in the C ABI, said where they are defined; records and their values in C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from kernelwright.problems.fields import Word

_Class = TypeVar("_Class", bound=type[Any])


@dataclass(frozen=True)
class CStruct:
    """A record that stands for a struct, with fields of the same names.

    :ivar name: of the struct.
    :ivar header: which declares it.
    :ivar others: members that are called otherwise, by the field's name, such as ``base.op``.
    """

    name: str
    header: str
    others: Mapping[str, str] = field(default_factory=dict)


STRUCTS: dict[type[Any], CStruct] = {}


def c_struct(name: str, header: str, **others: str) -> Callable[[_Class], _Class]:
    """Say what a record is in C; see :class:`CStruct`."""

    def said(one: _Class) -> _Class:
        STRUCTS[one] = CStruct(name, header, others)
        return one

    return said


def expression(value: object) -> str:
    """A field of a record in C: a number, an enumerator, 0 for None, an initialiser, or ``KW_SERVES(…) | …``."""
    if isinstance(value, frozenset):
        return _serves(value)
    if isinstance(value, tuple):
        return "{%s}" % ", ".join(map(expression, value))  # noqa: UP031 - braces
    if type(value) in STRUCTS:
        return initialiser(value)
    if value is None or isinstance(value, float):
        return "0" if value is None else repr(value)
    return value.c_name if isinstance(value, Word) else str(int(value))  # type: ignore[call-overload]


def members(record: Any) -> Mapping[str, str]:
    """All fields of a record in C, by the names of the struct's members."""
    others = STRUCTS[type(record)].others
    return {others.get(one.name, one.name): expression(getattr(record, one.name)) for one in fields(record)}


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
