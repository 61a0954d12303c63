"""Words of descriptions: enumerations, fields and structs, as the C ABI and Python know them.

A description is data. ``kernelwright.codegen.descriptions`` writes C of it, :mod:`kernelwright.problems.structs` makes
ctypes of it, and classes of problems read ranges and words in it.
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
    """A value of an enumeration of the C ABI, as Python, JSON and messages of both languages call it.

    Classes of words are enumerations; their docstrings are comments in C. A member is its name, and where C needs them
    its ``meaning``, ``c_name`` and ``number``::

        class Rope(Word, c_type="kw_attention_rope", prefix="KW_ROPE_"):
            NONE = "none"
            HALF = "half", "a = x[i], b = x[i + rotary_dim / 2]"

    :ivar meaning: its comment in C.
    :ivar c_name: its name in C; by default the member's behind the enumeration's prefix.
    :ivar number: its value in C; by default one more than that of the member before.
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
        """A member; see the class."""
        made = str.__new__(cls, name)
        made._value_, made.meaning, made.c_name, made.number = name, meaning, c_name, number
        return made

    def __init_subclass__(
        cls, *, c_type: str, prefix: str, first: int = 0, named: bool = True, function: str = "",
        of_traits: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Number the members.

        :param c_type: the type in C, such as ``kw_dtype``.
        :param prefix: of the values in C, such as ``KW_``.
        :param first: the first number.
        :param named: whether C has a function from numbers to names: ``function``, by default ``<c_type>_name``.
        :param of_traits: words of kernels' traits, which no problem has: ``codes`` and ``names`` lack them.
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
    """One member of a struct: a name of a field."""

    name: str
    field: Field

    @property
    def enum(self) -> type[Word] | None:
        """What its numbers mean."""
        return self.field.type if isinstance(self.field.type, type) else None

    @property
    def c_type(self) -> str:
        """C type of an entry."""
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
    op: type[Word] | None = None

    @cached_property
    def members(self) -> dict[str, Member]:
        """Every member behind the head, in order."""
        return {name: Member(name, field) for field in self.fields for name in field.names.split()}

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """Numbers by name, for every member that is of an enumeration."""
        return {name: one.enum.codes for name, one in self.members.items() if one.enum is not None}


U16 = Annotated[int, "uint16_t"]
U32 = Annotated[int, "uint32_t"]
U64 = Annotated[int, "uint64_t"]
Wholes = tuple[int, ...]
_TYPES: Mapping[Any, str] = {bool: "uint32_t", int: "int64_t", float: "double", Wholes: "int64_t"}
RECORDS: dict[type[Any], Struct] = {}
"""Structs that are classes in Python; see :func:`record`."""
_Class = TypeVar("_Class")


@dataclass(frozen=True, eq=False, repr=False)
class Said:
    """What :func:`member` says of a member of a record."""

    default: Any
    init: bool
    joined: bool
    field: Mapping[str, Any]


def member(meaning: str = "", *, default: Any = MISSING, init: bool = True, joined: bool = False, **field: Any) -> Any:
    """A member of a record; those above it that say nothing C declares together with it.

    :param default: what it is unless given.
    :param init: whether rules read it; else it is 0 in Python.
    :param joined: whether it is declared together with the next, too.
    :param field: as for :class:`Field`.
    """
    return Said(default if init else 0, init, joined, MappingProxyType({"meaning": meaning, **field}))


@dataclass_transform(frozen_default=True, field_specifiers=(member,))
def record(c_name: str, op: type[Word] | None = None) -> Callable[[type[_Class]], type[_Class]]:
    """A struct whose members are annotations of a class, with the class's docstring as its comment in C.

    Rules read it in Python, where it is a data class once :func:`kernelwright.codegen.c_names.data_class` made it one:
    dispatchers need not wait for that. ``bool`` is 0 or 1, a set has bits (``KW_SERVES``), None is 0.
    """

    def described(one: type[_Class]) -> type[_Class]:
        RECORDS[one] = Struct(c_name, _fields_of(one), one.__doc__ or "", op)
        return one

    return described


def _fields_of(one: type[Any]) -> tuple[Field, ...]:
    """Members without a word of their own are declared together with the next that has one."""
    fields: list[Field] = []
    names: list[str] = []
    for name, kind in one.__annotations__.items():
        if name == "op":  # of kw_problem
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
    """The type of an entry of a field in C."""
    if isinstance(field.type, type):
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
    parts: tuple[type[Word] | Constant | Struct | Verbatim, ...]
