"""ctypes structs of the C ABI, made from their descriptions, and their members as words and numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, TypeVar

from kernelwright.problems.fields import Member, Struct, Word

_TYPES: Mapping[str, Any] = {
    "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
    "double": ctypes.c_double,
}  # fmt: skip
_NONE: Mapping[str, Any] = {}
S = TypeVar("S", bound=ctypes.Structure)
_HEAD = (("struct_size", ctypes.c_uint32), ("op", ctypes.c_uint32))


def members(struct: Struct, types: Mapping[str, Any] = _NONE) -> list[tuple[str, Any]]:
    """Return ``_fields_`` of a ctypes structure; ``types`` maps C names of other structures and of pointers to types.

    Problems begin with the members of ``kw_problem``.
    """
    fields = [(one.name, types.get(one.c_type) or _type(one)) for one in struct.members.values()]
    return [*_HEAD, *fields] if struct.op else fields


def _type(member: Member) -> Any:
    kind = ctypes.c_void_p if member.c_type.endswith("*") else _TYPES[member.c_type]
    return kind if member.length is None else kind * member.length


def make(kind: type[S], struct: Struct, op: int, given: dict[str, Any]) -> S:
    """Make a problem from numbers, tuples and words, which are replaced by numbers in ``given`` too; the rest is 0."""
    for name, codes in struct.codes.items():
        given[name] = codes[given[name]]
    return kind(struct_size=ctypes.sizeof(kind), op=op, **given)


def values(given: ctypes.Structure, struct: Struct) -> dict[str, Any]:
    """Return the members of a problem after its head: numbers, tuples of them, and words."""
    return {name: _value(getattr(given, name), one.enum) for name, one in struct.members.items()}


def _value(value: Any, enum: type[Word] | None) -> Any:
    if enum is not None:
        return enum.names[value]
    if isinstance(value, ctypes.Structure):
        return tuple(getattr(value, name) for name, *_ in value._fields_)
    return tuple(value) if isinstance(value, ctypes.Array) else value
