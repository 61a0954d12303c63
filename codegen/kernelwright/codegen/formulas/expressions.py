"""Expressions of a formula or rule in C."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence

from kernelwright.codegen.c_names import member_name
from kernelwright.codegen.formulas.types import (
    REAL,
    REFUSAL,
    TEXT,
    TRUTH,
    WHOLE,
    WHOLES,
    Module,
    Record,
    check,
    set_of,
)

# Precedence of C operators; calls, names and numbers bind strongest.
CHOICE, OR, AND, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(8)
ARITHMETIC: Mapping[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", SUM), ast.Sub: ("-", SUM), ast.Mult: ("*", PRODUCT), ast.Div: ("/", PRODUCT),
}  # fmt: skip
# Operators on whole numbers: sums and products call functions that detect results beyond 63 bits.
_SAFE: Mapping[type[ast.operator], str] = {ast.Add: "kw_add", ast.Mult: "kw_mul"}
_EXACT: Mapping[type[ast.operator], tuple[str, int]] = {
    ast.Sub: ("-", SUM), ast.FloorDiv: ("/", PRODUCT), ast.Mod: ("%", PRODUCT),
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
# Functions of numbers, and the fewest arguments of each; those of two arguments are nested for more.
_CALLED = {
    "min": ("kw_min", 2), "max": ("kw_max", 2), "abs": ("kw_abs", 1), "ceil": ("kw_ceil", 1), "floor": ("kw_floor", 1),
}  # fmt: skip
_WHOLE_CALLED = {"min": "kw_smaller", "max": "kw_larger"}
# Functions of formulas.widths.
_WIDTHS = {
    "parts": ("kw_parts", (WHOLE, WHOLE), WHOLE), "fits_int16": ("kw_fits_int16", (WHOLE,), TRUTH),
    "fits_int32": ("kw_fits_int32", (WHOLE,), TRUTH), "fits_uint32": ("kw_fits_uint32", (WHOLE,), TRUTH),
    "fits_int64": ("kw_fits_int64", (WHOLE,), TRUTH), "element_bytes": ("kw_dtype_bytes", ("DType",), WHOLE),
    "dtype_name": ("kw_dtype_name", ("DType",), TEXT),
    "bytes_fit_int32": ("kw_bytes_fit_int32", (WHOLE, WHOLE), TRUTH),
    "finite_fp32": ("kw_finite_fp32", (REAL,), TRUTH), "whole": ("kw_is_whole", (REAL,), TRUTH),
}  # fmt: skip
LIMITS = ("INT16_MAX", "INT32_MIN", "INT32_MAX", "UINT32_MAX")

Translated = tuple[str, str, int]
"""The C text, its type, and the precedence of its operator."""


class Translator:
    """Translates expressions over a module's names and local variables of known types."""

    def __init__(self, module: Module, variables: Mapping[str, str]) -> None:
        self._module = module
        self._variables = variables

    def typed(self, node: ast.expr, kind: str, strength: int = CHOICE) -> str:
        """Translate an expression of a type, in parentheses where its operator binds less than ``strength``."""
        text, own_kind, own = self._translated(node, kind)
        if kind == TRUTH and own_kind == REFUSAL:
            text, own_kind, own = f"{text} != KW_OK", TRUTH, COMPARISON
        check(own_kind == kind, node, f"is {own_kind}, where {kind} is needed")
        return text if own >= strength else f"({text})"

    def expression(self, node: ast.expr, wanted: str | None = None) -> tuple[str, str]:
        """The C text and the type; ``wanted``, if a number type, is the type of an expression of literals alone."""
        return self._translated(node, self._number_kind(node) or wanted or self._module.literals)[:2]

    def _number_kind(self, *nodes: ast.expr) -> str | None:
        """The common number type of expressions, which literals take on; None for literals alone."""
        kinds = {self._found_kind(node) for node in nodes}
        return next((kind for kind in (WHOLE, REAL, *sorted(kinds - {None})) if kind in kinds), None)  # type: ignore[type-var]

    def _found_kind(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=bool()):
                return TRUTH
            case ast.Constant(value=int()):
                return None
            case ast.BinOp(left=left, op=op, right=right):
                return WHOLE if isinstance(op, ast.LShift) else self._number_kind(left, right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._number_kind(operand)
            case ast.IfExp(body=body, orelse=orelse):
                return self._number_kind(body, orelse)
            case ast.Call(func=ast.Name(id=name), args=given) if name in ("min", "max", "abs"):
                return self._number_kind(*given)
        return self._translated(node, REAL)[1]

    def _translated(self, node: ast.expr, wanted: str) -> Translated:
        """Translate an expression; ``wanted`` is the type of literals where nothing else determines it."""
        match node:
            case ast.Constant(value=bool(value)):
                return ("true" if value else "false"), TRUTH, ATOM
            case ast.Constant(value=int(value)) if wanted == WHOLE:
                return str(value), WHOLE, ATOM
            case ast.Constant(value=int(value) | float(value)):
                return repr(float(value)), REAL, ATOM
            case ast.Constant(value=str(value)):
                return json.dumps(value), TEXT, ATOM
            case ast.Name(id=name):
                return *self._name(node, name), ATOM
            case ast.Attribute(value=ast.Name(id=name), attr=member) if name in self._module.enums:
                enum = self._module.enums[name]
                check(member in enum.__members__, node, f"is no member of {name}")
                return enum[member].c_name, name, ATOM
            case ast.Attribute(value=of, attr=member):
                return self._member(node, of, member)
            case ast.Subscript(value=of, slice=index):
                place = f"{self.typed(of, WHOLES, ATOM)}[{self.typed(index, WHOLE)}]"
                return place, WHOLE, ATOM
            case ast.Call(func=ast.Name(id=name), args=given, keywords=named):
                return *self._call(node, name, given, named, wanted), ATOM
            case ast.BinOp(left=ast.Constant(value=int(value)), op=ast.LShift(), right=ast.Constant(value=int(by))):
                return str(value << by), WHOLE, ATOM
            case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
                return self._arithmetic(node, wanted)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.typed(operand, TRUTH, UNARY)}", TRUTH, UNARY
            case ast.BoolOp(op=op, values=values):
                symbol, own = (" && ", AND) if isinstance(op, ast.And) else (" || ", OR)
                # Compilers ask for parentheses around && next to ||.
                return symbol.join(self.typed(one, TRUTH, COMPARISON) for one in values), TRUTH, own
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(node, left, op, right)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                kind = self._number_kind(body, orelse) or wanted
                chosen, other = self.typed(body, kind, OR), self.typed(orelse, kind)
                return f"{self.typed(test, TRUTH, OR)} ? {chosen} : {other}", kind, CHOICE
        check(False, node, "is no expression of a formula")
        raise AssertionError

    def _arithmetic(self, node: ast.BinOp | ast.UnaryOp, wanted: str) -> Translated:
        kind = self._number_kind(node) or (wanted if wanted in (REAL, WHOLE) else self._module.literals)
        if isinstance(node, ast.UnaryOp):
            return f"-{self.typed(node.operand, kind, ATOM)}", kind, UNARY
        table = ARITHMETIC if kind == REAL else {**_EXACT, **dict.fromkeys(_SAFE, ("", ATOM))}
        check(type(node.op) in table, node, "is no expression of a formula")
        symbol, own = table[type(node.op)]
        if kind == WHOLE and type(node.op) in _SAFE:
            listed = f"{self.typed(node.left, WHOLE)}, {self.typed(node.right, WHOLE)}"
            return f"{_SAFE[type(node.op)]}({listed})", WHOLE, ATOM
        left = self.typed(node.left, kind, own)
        if kind == WHOLE and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Attribute | ast.Subscript):
            left = f"(int64_t){left}"  # struct members may be unsigned
        return f"{left} {symbol} {self.typed(node.right, kind, own + 1)}", kind, own

    def _comparison(self, node: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Translated:
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(left, right, isinstance(op, ast.In))
        check(type(op) in _COMPARED, node, "is no expression of a formula")
        kind = self._number_kind(left, right) or self._module.literals
        mixed = {self._found_kind(left), self._found_kind(right)} == {REAL, WHOLE}
        limited = mixed and isinstance(right, ast.Name) and right.id in LIMITS
        check(not mixed or limited, node, "compares numbers of two types")
        if limited:
            return f"{self.typed(left, REAL, SUM)} {_COMPARED[type(op)]} {self.typed(right, WHOLE)}", TRUTH, COMPARISON
        same = kind in (TRUTH, *self._module.enums) and isinstance(op, ast.Eq | ast.NotEq)
        check(same or kind in (REAL, WHOLE), node, f"compares values that are {kind}")
        strength = PRODUCT if kind == TRUTH else SUM
        return (
            f"{self.typed(left, kind, strength)} {_COMPARED[type(op)]} {self.typed(right, kind, strength)}",
            TRUTH,
            COMPARISON,
        )

    def _contained(self, left: ast.expr, right: ast.expr, wanted: bool) -> Translated:
        kind = self._number_kind(left, *(right.elts if isinstance(right, ast.Tuple) else ())) or WHOLE
        if isinstance(right, ast.Tuple):
            symbol, join, own = (" == ", " || ", OR) if wanted else (" != ", " && ", AND)
            one = self.typed(left, kind, SUM)
            return join.join(one + symbol + self.typed(each, kind, SUM) for each in right.elts), TRUTH, own
        text = f"kw_in_set({self.typed(right, set_of(kind))}, {self.typed(left, kind)})"
        return (text, TRUTH, ATOM) if wanted else (f"!{text}", TRUTH, UNARY)

    def _name(self, node: ast.expr, name: str) -> tuple[str, str]:
        if name in self._module.constants:
            return self._module.c_name(name), WHOLE if name in self._module.whole else REAL
        if name in LIMITS:
            return name, WHOLE
        check(name in self._variables, node, f"is not known here; known: {', '.join(self._variables)}")
        return name, self._variables[name]

    def _member(self, node: ast.expr, of: ast.expr, member: str) -> Translated:
        text, kind = self.expression(of)
        if kind in self._module.structs:
            struct = self._module.structs[kind]
            check(member in struct.fields, node, f"is no field of {kind}; allowed: {', '.join(struct.fields)}")
            place = f"{text[1:]}." if text.startswith("&") else f"{text}->"
            place, member_kind = place + member_name(member), struct.fields[member]
            if member_kind in self._module.structs:  # structs are passed by address
                return f"&{place}", member_kind, ATOM
            return (f"{place} != 0", TRUTH, COMPARISON) if member_kind == TRUTH else (place, member_kind, ATOM)
        record = self._module.records.get(kind)
        kinds = {one.name: one.type for one in record.fields} if record else {}
        check(member in kinds, node, f"is no field of {kind}; allowed: {', '.join(kinds)}")
        return f"{text}.{member}", kinds[member], ATOM

    def _call(
        self, node: ast.expr, name: str, given: Sequence[ast.expr], named: Sequence[ast.keyword], wanted: str
    ) -> tuple[str, str]:
        if name in self._module.records:
            return self._filled(node, self._module.records[name], given, named), name
        check(not named, node, "names arguments")
        functions = self._module.functions
        if name in functions or name in _WIDTHS:
            c, kinds, result = _WIDTHS.get(name) or ("", functions[name].arguments, functions[name].result)
            check(len(given) == len(kinds), node, f"has {len(given)} arguments of {len(kinds)}")
            listed = [self.typed(one, kind) for one, kind in zip(given, kinds, strict=True)]
            listed += ["reason", "bytes"] if result == REFUSAL else []
            return f"{c or self._module.c_name(name)}({', '.join(listed)})", result
        check(name in _CALLED, node, f"calls {name}; allowed: {', '.join((*_CALLED, *functions))}")
        function, least = _CALLED[name]
        kind = self._number_kind(*given) or (wanted if wanted in (REAL, WHOLE) else self._module.literals)
        if kind == WHOLE:
            check(name in _WHOLE_CALLED, node, f"calls {name} of a whole number")
            function = _WHOLE_CALLED[name]
        numbers = [self.typed(one, kind) for one in given]
        check(len(numbers) == least or (least == 2 < len(numbers)), node, "has another number of arguments")
        text = numbers[0] if least == 2 else f"{function}({numbers[0]})"
        for one in numbers[1:]:
            text = f"{function}({text}, {one})"
        return text, kind

    def _filled(self, node: ast.expr, record: Record, given: Sequence[ast.expr], named: Sequence[ast.keyword]) -> str:
        check(len(given) <= len(record.fields), node, f"has more values than {record.name} has fields")
        by_name = dict(zip((one.name for one in record.fields), given, strict=False))
        for keyword in named:
            known = any(one.name == keyword.arg for one in record.fields) and keyword.arg not in by_name
            check(known, node, f"gives {keyword.arg}, which {record.name} lacks or has already")
            by_name[str(keyword.arg)] = keyword.value
        parts = []
        for one in record.fields:
            check(one.name in by_name or one.default is not None, node, f"leaves {one.name} out")
            parts.append(self.typed(by_name[one.name], one.type) if one.name in by_name else str(one.default))
        return f"KW_RECORD({self._module.c_name(record.name)}, {', '.join(parts)})"
