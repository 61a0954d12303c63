"""Words of descriptions: enumerations, fields and structs, as the C ABI and Python know them.

A description is data: ``kernelwright.codegen.descriptions`` writes C from it, :mod:`kernelwright.problems.structs`
makes ctypes from it, and problem classes read ranges and words from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType, UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, dataclass_transform, get_args, get_origin

INT64_MAX = 2**63 - 1


class Word(StrEnum):
    """A value of an enumeration of the C ABI, by its name in Python, JSON and messages of both languages.

    Subclasses are enumerations; their docstrings become comments in C. A member is given by its name and, where C needs
    them, its ``meaning``, ``c_name`` and ``number``::

        class Rope(Word, c_type="kw_attention_rope", prefix="KW_ROPE_"):
            NONE = "none"
            HALF = "half", "a = x[i], b = x[i + rotary_dim / 2]"

    :ivar meaning: its comment in C.
    :ivar c_name: its name in C; by default the enumeration's prefix and the member's Python name.
    :ivar number: its value in C; by default one more than the previous member's.
    """

    meaning: str
    c_name: str
    number: int
    c_type: ClassVar[str]
    prefix: ClassVar[str]
    first: ClassVar[int]
    function: ClassVar[str]
    codes: ClassVar[dict[str, int]]
    names: ClassVar[dict[int, str]]

    def __new__(cls, name: str, meaning: str = "", c_name: str = "", number: int = -1) -> Self:
        """Make a member; see the class."""
        made = str.__new__(cls, name)
        made._value_, made.meaning, made.c_name, made.number = name, meaning, c_name, number
        return made

    def __init_subclass__(
        cls, *, c_type: str, prefix: str, first: int = 0, named: bool = True, function: str = "",
        of_traits: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Number the members.

        :param c_type: the type in C, such as ``kw_dtype``.
        :param prefix: the prefix of the values in C, such as ``KW_``.
        :param first: the first number.
        :param named: whether C has a function that maps numbers to names: ``function``, by default ``<c_type>_name``.
        :param of_traits: words that only kernels' traits use, not problems: ``codes`` and ``names`` omit them.
        """
        super().__init_subclass__()
        cls.c_type, cls.prefix, cls.first = c_type, prefix, first
        cls.function = (function or f"{c_type}_name") if named else ""
        for number, member in enumerate(cls, first):
            member.number = number if member.number < 0 else member.number
            member.c_name = prefix + (member.c_name or member.name)
        cls.codes = {member.value: member.number for member in cls if member.value not in of_traits}
        cls.names = {number: name for name, number in cls.codes.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Constant:
    """A number that has a name in C and Python."""

    c_name: str
    value: int
    doc: str = ""
    suffix: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """A member of a struct, or several of one type that are declared together.

    :ivar names: names of the members, separated by spaces.
    :ivar type: a type of C, an enumeration, whose values are ``uint32_t`` in structs, or a struct of ``int64_t``.
    :ivar meaning: its comment in C: unit, shape, the operand that it belongs to.
    :ivar length: entries of an array.
    :ivar least: the least legal number, checked by C and Python; ``most`` the largest.
    :ivar axes: a letter for each entry of an array, which messages name.
    :ivar counted: the member that says how many entries the problem's JSON shows.
    :ivar in_json: whether the problem's JSON has it.
    """

    names: str
    type: str | type[Word] | Struct
    meaning: str = ""
    length: Constant | int | None = None
    least: int | None = None
    most: int = INT64_MAX
    axes: str = ""
    counted: str = ""
    in_json: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Member:
    """One member of a struct: one of the names of a field."""

    name: str
    field: Field

    @property
    def enum(self) -> type[Word] | None:
        """The enumeration of its numbers; None for a plain number."""
        return self.field.type if isinstance(self.field.type, type) else None

    @property
    def c_type(self) -> str:
        """The C type of an entry."""
        return c_type(self.field)

    @property
    def length(self) -> int | None:
        """The number of entries of an array; None for a single value."""
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

    :ivar c_name: its name in C, such as ``kw_conv_problem``.
    :ivar op: the operations whose problems it describes, for structs that begin with ``kw_problem base``.
    """

    c_name: str
    fields: tuple[Field, ...]
    doc: str = ""
    op: type[Word] | None = None

    @cached_property
    def members(self) -> dict[str, Member]:
        """Members after the head, by name and in order."""
        return {name: Member(name, field) for field in self.fields for name in field.names.split()}

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """Numbers by word, for every member whose type is an enumeration."""
        return {name: one.enum.codes for name, one in self.members.items() if one.enum is not None}


U16 = Annotated[int, "uint16_t"]
U32 = Annotated[int, "uint32_t"]
U64 = Annotated[int, "uint64_t"]
Wholes = tuple[int, ...]
_TYPES: Mapping[Any, str] = {bool: "uint32_t", int: "int64_t", float: "double", Wholes: "int64_t"}
RECORDS: dict[type[Any], Struct] = {}
"""Structs that are Python classes; see :func:`record`."""
_Class = TypeVar("_Class")


@dataclass(frozen=True, eq=False, repr=False)
class Said:
    """Arguments that :func:`member` records for a member of a record."""

    default: Any
    init: bool
    joined: bool
    field: Mapping[str, Any]


def member(meaning: str = "", *, default: Any = MISSING, init: bool = True, joined: bool = False, **field: Any) -> Any:
    """Declare a member of a record; preceding members without a declaration are declared in C together with it.

    :param default: its default value.
    :param init: whether rules read it; otherwise it is 0 in Python.
    :param joined: whether C declares it together with the next member, too.
    :param field: arguments of :class:`Field`.
    """
    return Said(default if init else 0, init, joined, MappingProxyType({"meaning": meaning, **field}))


@dataclass_transform(frozen_default=True, field_specifiers=(member,))
def record(c_name: str, op: type[Word] | None = None) -> Callable[[type[_Class]], type[_Class]]:
    """Register a class as a struct: annotations are its members, the docstring is its comment in C.

    Rules read it in Python, where it becomes a data class when :func:`kernelwright.codegen.c_names.data_class` is
    called: dispatchers need not wait for that. ``bool`` is 0 or 1, a set has bits (``KW_SERVES``), None is 0.
    """

    def described(one: type[_Class]) -> type[_Class]:
        RECORDS[one] = Struct(c_name, _fields_of(one), one.__doc__ or "", op)
        return one

    return described


def _fields_of(one: type[Any]) -> tuple[Field, ...]:
    """Return the fields; members without a declaration of their own join the next one that has one."""
    fields: list[Field] = []
    names: list[str] = []
    for name, kind in one.__annotations__.items():
        if name == "op":  # a member of kw_problem
            continue
        names.append(name)
        said = vars(one).get(name)
        if isinstance(said, Said) and not said.joined:
            limits = {"least": 0, "most": 1} if kind is bool else {}
            fields.append(Field(" ".join(names), _type_of(kind), **{**limits, **said.field}))
            names = []
    return tuple(fields)


def _type_of(kind: Any) -> str | type[Word] | Struct:
    if isinstance(kind, type) and issubclass(kind, Word):
        return kind
    if kind in RECORDS:
        return RECORDS[kind]
    if get_origin(kind) is Annotated:
        return str(get_args(kind)[1])
    return "uint32_t" if get_origin(kind) in (frozenset, UnionType) else _TYPES[kind]


def c_type(field: Field) -> str:
    """Return the C type of an entry of a field."""
    if isinstance(field.type, type):
        return "uint32_t"
    return field.type.c_name if isinstance(field.type, Struct) else field.type


@dataclass(frozen=True, eq=False, repr=False)
class Verbatim:
    """C text that no description covers, such as a struct of functions."""

    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Header:
    """A header of the C ABI, with its parts in order.

    :ivar path: its path in ``#include``.
    """

    path: str
    doc: str
    includes: tuple[str, ...]
    parts: tuple[type[Word] | Constant | Struct | Verbatim, ...]
