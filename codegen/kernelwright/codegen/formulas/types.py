"""Names that a module of formulas or rules holds, and the types of its values."""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.codegen.descriptions.made import declared_in
from kernelwright.codegen.violations import SpecError
from kernelwright.problems.fields import RECORDS, Word
from kernelwright.problems.fields import Struct as CStruct

REAL, TRUTH, WHOLE, TEXT, WHOLES, REFUSAL = "float", "bool", "int", "str", "tuple[int, ...]", "Refusal"
_C = {
    REAL: "double", TRUTH: "bool", WHOLE: "int64_t", TEXT: "const char*", WHOLES: "const int64_t*",
    REFUSAL: "kw_status",
}  # fmt: skip
_SET = "frozenset of "


class FormulaError(SpecError):
    """A formula or rule that uses something outside the language."""


def check(holds: bool, node: ast.AST, problem: str) -> None:
    """Raise FormulaError with the line and text of ``node`` unless ``holds``."""
    if not holds:
        raise FormulaError(f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)[:120]!r} {problem}")


def set_of(kind: str) -> str:
    """Return the type of sets of values of a type: bit masks in C."""
    return _SET + kind


@dataclass(frozen=True)
class Field:
    """A member of a record. ``default`` is a C expression, or None."""

    name: str
    type: str
    default: str | None


@dataclass(frozen=True)
class Record:
    """A NamedTuple or frozen dataclass; in C a struct whose first fields are those of its base."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Function:
    """Types of arguments and of the result."""

    name: str
    arguments: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Struct:
    """A struct of the C ABI, and the types of its members by name."""

    c: CStruct
    fields: Mapping[str, str]


@dataclass
class Module:
    """Names defined above the line that is being translated.

    :ivar prefix: the prefix of its names in C, which all formulas share as one namespace.
    :ivar literals: the default type of numbers: whole in rules.
    :ivar derived: constants that are expressions over other constants.
    :ivar whole: constants that are whole numbers.
    :ivar imported: C names that other formulas define.
    :ivar enums: enumerations of the C ABI.
    :ivar headers: headers that declare enumerations and structs.
    """

    prefix: str
    literals: str = REAL
    constants: dict[str, float] = field(default_factory=dict)
    derived: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    records: dict[str, Record] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    enums: dict[str, type[Word]] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)

    def c_name(self, name: str) -> str:
        """Return the C name of a constant, a record or a function."""
        own = f"{self.prefix.upper()}_{name}" if name in self.constants else f"{self.prefix}_{name}"
        return self.imported.get(name, own)

    def take(self, name: str, other: Module) -> bool:
        """Import a constant, record or function of another formula; False if it has none of that name."""
        if name in other.functions:
            self.functions[name] = other.functions[name]
            for kind in (*self.functions[name].arguments, self.functions[name].result):
                self._take_type(kind, other)
        elif name in other.constants:
            self.constants[name] = other.constants[name]
            self.whole |= {name} & other.whole
        elif not self._take_type(name, other):
            return False
        self.imported[name] = other.c_name(name)
        return True

    def take_class(self, name: str, one: Any) -> bool:
        """Import an enumeration or struct of the C ABI; False for other classes."""
        if isinstance(one, type) and issubclass(one, Word):
            self.enums[name] = one
            self.headers.add(declared_in()[one])
            return True
        if one not in RECORDS:
            return False
        self.headers.add(declared_in()[RECORDS[one]])
        read = {each.name for each in dataclasses.fields(one) if each.init}
        hints = {member: hint for member, hint in typing.get_type_hints(one).items() if member in read}
        self.structs[name] = Struct(RECORDS[one], {})
        self.structs[name] = Struct(RECORDS[one], {member: self._class_kind(hint) for member, hint in hints.items()})
        return True

    def _class_kind(self, hint: Any) -> str:
        """Return the type of a struct's member."""
        given = [one for one in typing.get_args(hint) if one is not type(None)]
        origin = typing.get_origin(hint)
        if origin is frozenset:
            return set_of(self._class_kind(given[0]))
        if origin is tuple:
            return WHOLES
        if given:  # … | None
            return self._class_kind(given[0])
        if issubclass(hint, Word) or hint in RECORDS:
            self.take_class(hint.__name__, hint)
        return str(hint.__name__)

    def _take_type(self, name: str, other: Module) -> bool:
        name = name.removeprefix(_SET)
        self.enums |= {name: other.enums[name]} if name in other.enums else {}
        self.structs |= {name: other.structs[name]} if name in other.structs else {}
        if name not in other.records:
            return False
        self.records[name] = other.records[name]
        self.imported[name] = other.c_name(name)
        for one in other.records[name].fields:
            self._take_type(one.type, other)
        return True

    def c_type(self, kind: str) -> str:
        """Return the C type of a formula's type."""
        if kind in self.enums or kind.startswith(_SET):
            return "uint32_t"
        return _C.get(kind) or self.c_name(kind)

    def given_type(self, kind: str) -> str:
        """Return the C type of an argument."""
        if kind in self.structs:
            return f"const {self.structs[kind].c.c_name}*"
        return self.c_type(kind) if kind not in self.records else f"KW_GIVEN({self.c_name(kind)})"

    def type_of(self, annotation: ast.expr | None) -> str:
        """Return the type that an annotation names. FormulaError without one, and for types outside the language."""
        check(annotation is not None, ast.Constant("a value"), "has no annotation")
        assert annotation is not None
        match annotation:
            case ast.Subscript(value=ast.Name(id="frozenset"), slice=of):
                return set_of(self.type_of(of))
            case ast.BinOp(left=one, op=ast.BitOr(), right=ast.Constant(value=None)):
                return self.type_of(one)
        name = ast.unparse(annotation)
        known = name in _C or name in self.records or name in self.enums or name in self.structs
        check(known, annotation, f"is no type here; allowed: {', '.join(_C)}, frozensets, and records above")
        return name
