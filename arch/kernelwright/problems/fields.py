"""Words of descriptions: enumerations, fields and structs, as the C ABI and Python know them.

A description is data. ``kernelwright.codegen.descriptions`` writes C of it, :mod:`kernelwright.problems.structs` makes
ctypes of it, and classes of problems read ranges and words in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

INT64_MAX = 2**63 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """A value of an enumeration.

    :ivar name: what Python, JSON and messages call it.
    :ivar meaning: its comment in C.
    :ivar c_name: its name in C behind the prefix; by default the name in capitals.
    :ivar text: what C calls it in messages and JSON; by default the name.
    """

    name: str
    meaning: str = ""
    c_name: str = ""
    text: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Enum:
    """An enumeration of C with the numbers from ``first`` on.

    :ivar c_name: of the type, such as ``kw_dtype``.
    :ivar prefix: of its values, such as ``KW_``.
    :ivar named: whether C has a function from numbers to names.
    :ivar function: its name; by default ``<c_name>_name``.
    :ivar item_bytes: bytes of an element by name; of element types.
    """

    c_name: str
    prefix: str
    values: tuple[Value, ...]
    doc: str = ""
    first: int = 0
    named: bool = True
    function: str = ""
    item_bytes: Mapping[str, int] | None = None

    @cached_property
    def codes(self) -> dict[str, int]:
        """Numbers by name."""
        return {one.name: self.first + place for place, one in enumerate(self.values)}

    @cached_property
    def names(self) -> dict[int, str]:
        """Names by number."""
        return {code: name for name, code in self.codes.items()}

    def c_value(self, value: Value) -> str:
        """The name of a value in C."""
        return self.prefix + (value.c_name or re.sub(r"\W", "_", value.name).upper())


@dataclass(frozen=True, eq=False, repr=False)
class Constant:
    """A number that C and Python know by name."""

    c_name: str
    value: int
    doc: str = ""
    suffix: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """A member of a struct, or several of one type that are declared together.

    :ivar names: separated by spaces.
    :ivar type: a type of C, an enumeration, whose values are ``uint32_t`` in structs, or a struct of ``int64_t``.
    :ivar meaning: its comment in C: unit, shape, whose it is.
    :ivar length: entries of an array.
    :ivar least: the least legal number, checked by C and Python; ``most`` the largest.
    :ivar axes: a letter for each entry of an array, which messages name.
    :ivar counted: the member that says how many entries the problem's JSON shows.
    :ivar in_json: whether the problem's JSON has it.
    """

    names: str
    type: str | Enum | Struct
    meaning: str = ""
    length: Constant | int | None = None
    least: int | None = None
    most: int = INT64_MAX
    axes: str = ""
    counted: str = ""
    in_json: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Member:
    """One member of a struct: a name of a field."""

    name: str
    field: Field

    @property
    def enum(self) -> Enum | None:
        """What its numbers mean."""
        return self.field.type if isinstance(self.field.type, Enum) else None

    @property
    def c_type(self) -> str:
        """Of an entry."""
        return c_type(self.field)

    @property
    def length(self) -> int | None:
        """Entries of an array; None for a single value."""
        length = self.field.length
        return length.value if isinstance(length, Constant) else length

    @property
    def most(self) -> int:
        """The largest legal number."""
        enum = self.enum
        return max(enum.names) if enum and self.field.most == INT64_MAX else self.field.most


@dataclass(frozen=True, eq=False, repr=False)
class Struct:
    """A struct of the C ABI.

    :ivar c_name: such as ``kw_conv_problem``.
    :ivar op: the operations whose problems it describes, for structs that begin with ``kw_problem base``.
    """

    c_name: str
    fields: tuple[Field, ...]
    doc: str = ""
    op: Enum | None = None

    @cached_property
    def members(self) -> dict[str, Member]:
        """Every member behind the head, in order."""
        return {name: Member(name, field) for field in self.fields for name in field.names.split()}

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """Numbers by name, for every member that is of an enumeration."""
        return {name: one.enum.codes for name, one in self.members.items() if one.enum is not None}


def c_type(field: Field) -> str:
    """The type of an entry of a field in C."""
    if isinstance(field.type, Enum):
        return "uint32_t"
    return field.type.c_name if isinstance(field.type, Struct) else field.type


@dataclass(frozen=True, eq=False, repr=False)
class Verbatim:
    """C that no description covers, such as a struct of functions."""

    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Header:
    """A header of the C ABI, in the order of its parts.

    :ivar path: as C includes it.
    """

    path: str
    doc: str
    includes: tuple[str, ...]
    parts: tuple[Enum | Constant | Struct | Verbatim, ...]
