"""Filters: expressions over kernels such as ``c.tile_n >= 128 and c.pipeline == 'compv4'``.

An expression becomes a tree of closures, node by node; only the kinds of nodes below have one, so nothing else can run.
Length and depth are bounded before that, and no operation creates a text, so neither time nor memory can grow.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation, operation_names
from kernelwright.codegen.violations import SpecError, closest

MAX_LENGTH = 1000
MAX_DEPTH = 40
MAX_VALUES = 8
"""The most values of an attribute that a message lists."""

_Evaluate = Callable[[Mapping[str, Any]], Any]  # from a kernel's attributes to a value

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
# Name → the function, the type of its arguments, their least and greatest number.
_FUNCTIONS: Mapping[str, tuple[Callable[..., Any], type, int, int]] = {
    "abs": (abs, float, 1, 1),
    "min": (min, float, 2, MAX_LENGTH),
    "max": (max, float, 2, MAX_LENGTH),
    "startswith": (str.startswith, str, 2, 2),
    "endswith": (str.endswith, str, 2, 2),
}
_HELP = f"only numbers, texts, comparisons, in, and, or, not, if, + - * / // % and {', '.join(_FUNCTIONS)}"


class FilterError(SpecError):
    """A filter that is not an expression over kernels, or that matches none of them."""


class NoMatchError(FilterError):
    """A filter that matches no kernel; the message lists the values that occur."""


def apply_filter(expression: str, kernels: Iterable[Kernel]) -> list[Kernel]:
    """Return the kernels for which ``expression`` is true, in order.

    Kernels are called ``c`` and have the attributes of :func:`view`. Numbers (with ``+ - * / // %``), texts,
    comparisons, ``in`` (a list of values, or a part of a text), ``and``, ``or``, ``not``, conditional expressions and
    the functions ``abs``, ``min``, ``max``, ``startswith`` and ``endswith`` are allowed, nothing else. An expression
    has at most 1000 characters and 40 levels. Raises FilterError for any other expression, and if nothing matches.
    """
    listed = list(kernels)
    matches = compile_filter(expression, dict.fromkeys(kernel.spec.op for kernel in listed))
    kept = [kernel for kernel in listed if matches(kernel)]
    if not kept:
        raise NoMatchError(
            f"filter {expression!r} matches none of {len(listed)} kernels{_occurring(expression, listed)}"
        )
    return kept


def _occurring(expression: str, kernels: Sequence[Kernel]) -> str:
    """Return ``; tile_m is 32, 64 or 128`` for each attribute of an expression that compiles."""
    nodes = ast.walk(ast.parse(expression.strip(), mode="eval"))
    names = sorted({node.attr for node in nodes if isinstance(node, ast.Attribute)} - {"name", "identity"})
    views = [view(kernel) for kernel in kernels]
    said = []
    for name in names:
        values = sorted({one[name] for one in views if name in one}, key=lambda value: (str(type(value)), value))
        shown = [str(value) for value in values[:MAX_VALUES]]
        more = f", … ({len(values)} values, up to {values[-1]})" if len(values) > MAX_VALUES else ""
        said.append(f"; c.{name} is {', '.join(shown)}{more}")
    return "".join(said)


def compile_filter(expression: str, operations: Iterable[str] | None = None) -> Callable[[Kernel], bool]:
    """Return ``expression`` as a function of a kernel; FilterError, also from the function, if it is not acceptable.

    Attributes may be those of kernels of any of ``operations`` (default: all). An expression over several operations
    tests ``c.op`` before it uses an attribute that only some of them have.
    """
    evaluate = _Compiler(expression, attributes(operation_names() if operations is None else operations)).compiled()

    def matches(kernel: Kernel) -> bool:
        try:
            return bool(evaluate(view(kernel)))
        except (ArithmeticError, KeyError, TypeError) as error:
            what = f"it has no attribute {error}" if isinstance(error, KeyError) else error
            raise FilterError(f"filter {expression!r} on a kernel of {kernel.spec.op}: {what}") from None

    return matches


def compile_expression(expression: str, names: Sequence[str]) -> Callable[[Mapping[str, Any]], Any]:
    """Return ``expression`` as a function of the attributes ``names`` of ``c``; FilterError if it is not acceptable.

    An operation filters fields with it before it makes kernels of them, whose names and identities cost more.
    """
    return _Compiler(expression, names).compiled()


def view(kernel: Kernel) -> dict[str, Any]:
    """Return the attributes that a filter sees: plain numbers, booleans and text."""
    own = operation(kernel.spec.op).view(kernel.spec)
    return {"arch": kernel.arch, "name": kernel.name, "identity": kernel.identity, **own}


def attributes(operations: Iterable[str]) -> tuple[str, ...]:
    """Return the attributes of kernels of some operations."""
    own = (name for one in operations for name in operation(one).attributes)
    return tuple(dict.fromkeys((*_COMMON, *own)))


_COMMON = ("arch", "name", "identity")


class _Compiler:
    """Compiles one expression over kernels with the attributes ``allowed``."""

    def __init__(self, expression: str, allowed: Sequence[str]) -> None:
        self.expression = expression
        self.allowed = allowed

    def compiled(self) -> _Evaluate:
        """Compile the whole expression; FilterError if any part of it is not allowed."""
        if len(self.expression) > MAX_LENGTH:
            raise FilterError(f"the filter is {len(self.expression)} characters long; allowed: {MAX_LENGTH}")
        try:
            tree = ast.parse(self.expression.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FilterError(f"filter {self.expression!r} is no expression: {error}") from None
        level: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise self.error(f"it is nested too deeply; allowed: {MAX_DEPTH} levels")
        return self.compile(tree)

    def error(self, why: str) -> FilterError:
        """Return the error that says why the expression is refused."""
        return FilterError(f"filter {self.expression!r}: {why}")

    def compile(self, node: ast.expr) -> _Evaluate:
        """Compile one node and everything below it."""
        # No match statement: an older Python makes the coverage report.
        kinds: tuple[tuple[type[ast.expr], Callable[[Any], _Evaluate | None]], ...] = (
            (ast.Constant, self._constant),
            (ast.Attribute, self._attribute),
            (ast.Name, self._name),
            (ast.BoolOp, self._bool_op),
            (ast.UnaryOp, self._unary_op),
            (ast.BinOp, self._bin_op),
            (ast.IfExp, self._if),
            (ast.Compare, self._comparison),
            (ast.Call, self._call),
        )
        for kind, compiled in kinds:
            if isinstance(node, kind) and (evaluate := compiled(node)) is not None:
                return evaluate
        raise self.error(f"{type(node).__name__} is not allowed, {_HELP}")

    def _constant(self, node: ast.Constant) -> _Evaluate | None:
        value = node.value
        return (lambda c: value) if isinstance(value, bool | int | float | str) else None

    def _name(self, node: ast.Name) -> _Evaluate:
        raise self.error(f"unknown name {node.id!r}; a kernel is called c, as in c.tile_m")

    def _bool_op(self, node: ast.BoolOp) -> _Evaluate:
        return _boolean(isinstance(node.op, ast.And), [self.compile(value) for value in node.values])

    def _unary_op(self, node: ast.UnaryOp) -> _Evaluate | None:
        if not isinstance(node.op, ast.Not | ast.USub):
            return None
        inner = self.compile(node.operand)
        return (lambda c: not inner(c)) if isinstance(node.op, ast.Not) else (lambda c: -_number(inner(c), "-"))

    def _bin_op(self, node: ast.BinOp) -> _Evaluate | None:
        if type(node.op) not in _ARITHMETIC:
            return None
        return _arithmetic(_ARITHMETIC[type(node.op)], self.compile(node.left), self.compile(node.right))

    def _if(self, node: ast.IfExp) -> _Evaluate:
        condition, yes, no = self.compile(node.test), self.compile(node.body), self.compile(node.orelse)
        return lambda c: yes(c) if condition(c) else no(c)

    def _attribute(self, node: ast.Attribute) -> _Evaluate:
        if not (isinstance(node.value, ast.Name) and node.value.id == "c"):
            raise self.error("only a kernel has attributes, as in c.tile_m")
        name = node.attr
        if name not in self.allowed:
            hint = closest(name, self.allowed).replace("'", "").replace("mean ", "mean c.")
            raise self.error(f"unknown attribute {name!r}{hint}; allowed: {', '.join(self.allowed)}")
        return lambda c: c[name]

    def _call(self, node: ast.Call) -> _Evaluate | None:
        if not isinstance(node.func, ast.Name) or node.keywords:
            return None
        name, args = node.func.id, node.args
        if name not in _FUNCTIONS:
            hint = closest(name, _FUNCTIONS)
            raise self.error(f"unknown function {name!r}{hint}; allowed: {', '.join(_FUNCTIONS)}")
        function, kind, least, most = _FUNCTIONS[name]
        if not least <= len(args) <= most:
            raise self.error(f"{name} has {len(args)} arguments; allowed: {least}{' or more' * (most > least)}")
        check = _text if kind is str else _number
        inner = [self.compile(arg) for arg in args]
        return lambda c: function(*(check(arg(c), name) for arg in inner))

    def _comparison(self, node: ast.Compare) -> _Evaluate:
        """Compile ``a < b <= c`` as ``a < b and b <= c``, where ``b`` is evaluated once."""
        first = self.compile(node.left)
        rest = [(self._test(op, side), self._side(side)) for op, side in zip(node.ops, node.comparators, strict=True)]

        def compare(c: Mapping[str, Any]) -> bool:
            left = first(c)
            for test, side in rest:
                right = side(c)
                if not test(left, right):
                    return False
                left = right
            return True

        return compare

    def _side(self, node: ast.expr) -> _Evaluate:
        """Compile the right side of a comparison, which alone may be a list."""
        if isinstance(node, ast.Tuple | ast.List):
            members = [self.compile(member) for member in node.elts]
            return lambda c: [member(c) for member in members]
        return self.compile(node)

    def _test(self, op: ast.cmpop, right: ast.expr) -> Callable[[Any, Any], bool]:
        listed = isinstance(right, ast.Tuple | ast.List)
        if isinstance(op, ast.In | ast.NotIn):
            within = _listed if listed else _contained
            return within if isinstance(op, ast.In) else lambda a, b: not within(a, b)
        if type(op) not in _COMPARISONS or listed:
            what = type(right if listed else op).__name__
            raise self.error(f"{what} is not allowed here, {_HELP}")
        return _COMPARISONS[type(op)]


def _listed(value: Any, members: Any) -> bool:
    return value in members


def _contained(part: Any, whole: Any) -> bool:
    return _text(part, "in") in _text(whole, "in")


def _boolean(all_of: bool, values: Sequence[_Evaluate]) -> _Evaluate:
    if all_of:
        return lambda c: all(value(c) for value in values)
    return lambda c: any(value(c) for value in values)


def _arithmetic(function: Callable[[Any, Any], Any], left: _Evaluate, right: _Evaluate) -> _Evaluate:
    sign = function.__name__
    return lambda c: function(_number(left(c), sign), _number(right(c), sign))


def _number(value: Any, what: str) -> Any:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{what} takes numbers, not {value!r}")


def _text(value: Any, what: str) -> Any:
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} takes a text, not {value!r}")
